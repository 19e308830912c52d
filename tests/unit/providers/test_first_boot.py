"""The user data of a new host, and the key by which it is recognised."""

from __future__ import annotations

import json
import subprocess

import asyncssh
import pytest

from fleetform.providers.first_boot.cloud_config import cloud_config
from fleetform.providers.first_boot.console import printed_host_key
from fleetform.providers.first_boot.host_key import first_key

SECRET = b"the passphrase of an environment, 32 bytes"
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICcLrqvs6NSuqfz4lcDtYfsyAC8OFJM8Nsn2UKoWRkDJ"


def document(*arguments, **named):
    head, _, text = cloud_config(*arguments, **named).partition("\n")
    assert head == "#cloud-config"
    return json.loads(text)


def test_the_first_key_is_derived() -> None:
    """The same secret and uid give the same bytes, so a killed controller has the key again."""
    assert first_key(SECRET, "u1") == first_key(SECRET, "u1")
    others = [first_key(SECRET, "u2"), first_key(SECRET + b"!", "u1")]
    assert len({one.public for one in (first_key(SECRET, "u1"), *others)}) == 3


def test_openssh_reads_the_first_key(tmp_path) -> None:
    """`ssh-keygen` finds the public half in the private one, and so does asyncssh."""
    for number in range(8):
        key = first_key(SECRET, f"u{number}")
        file = tmp_path / f"key{number}"
        file.touch(mode=0o600)
        file.write_text(key.private)
        shown = subprocess.check_output(["ssh-keygen", "-y", "-f", file], text=True)
        assert shown.split() == key.public.split()
        read = asyncssh.import_private_key(key.private).export_public_key().decode()
        assert read.split()[:2] == key.public.split()


def test_a_short_secret_is_refused() -> None:
    """Who sees the public half could try all short secrets."""
    with pytest.raises(AssertionError, match="too short"):
        first_key(b"passphrase", "u1")


def test_the_private_half_is_in_no_repr() -> None:
    """A log line or a traceback that shows the key shows its public half."""
    key = first_key(SECRET, "u1")
    assert key.public in repr(key)
    assert "PRIVATE" not in repr(key)


def test_the_document_has_account_and_host_key() -> None:
    """The account signs in with our key and becomes root, and the host has no key but the first one."""
    key = first_key(SECRET, "u1")
    told = document(f"{PUBLIC} tests\n", key)
    account = told["users"][1]
    assert account["name"] == "fleetform"
    assert account["ssh_authorized_keys"] == [f"{PUBLIC} tests"]
    assert account["sudo"] == "ALL=(ALL) NOPASSWD:ALL"
    assert told["ssh_keys"] == {"ed25519_private": key.private, "ed25519_public": key.public}
    assert told["ssh_deletekeys"] is True
    assert told["ssh_pwauth"] is False


def test_the_document_downloads_nothing() -> None:
    """A host without a way out boots as fast as any other one."""
    told = document(PUBLIC, first_key(SECRET, "u1"))
    assert (told["package_update"], told["package_upgrade"]) == (False, False)
    assert not {"packages", "apt", "snap", "runcmd", "bootcmd"} & told.keys()


def test_without_a_host_key_the_host_prints_its_own() -> None:
    """The document has no secret then, and asks for one key and its print on the console."""
    told = document(PUBLIC, None, account="admin")
    assert told["users"][1]["name"] == "admin"
    assert "ssh_keys" not in told
    assert told["ssh_genkeytypes"] == ["ed25519"]
    assert told["ssh"] == {"emit_keys_to_console": True}


CONSOLE = f"""\
[    1.0] Linux version 6.1\r
ci-info: | ssh-ed25519 | 0a:0b |\r
-----BEGIN SSH HOST KEY KEYS-----\r
ecdsa-sha2-nistp256 AAAAE2VjZHNh root@one\r
[    9.1] EXT4-fs: mounted\r
{PUBLIC} root@one\r
-----END SSH HOST KEY KEYS-----\r
one login: \r
"""


def test_the_console_shows_the_host_key() -> None:
    """Other types of keys and lines of the kernel are passed over."""
    assert printed_host_key(CONSOLE) == PUBLIC


@pytest.mark.parametrize(
    "output",
    [
        "",
        "one login: ",
        CONSOLE.partition("-----END")[0],
        CONSOLE.replace(PUBLIC, PUBLIC[:40]),
        PUBLIC,
    ],
)
def test_a_console_without_a_whole_block_shows_none(output: str) -> None:
    """What is cut off, or outside of the block, is no key."""
    assert printed_host_key(output) == ""


def test_the_first_block_counts() -> None:
    """Whatever a job prints to the console later is not the host's key."""
    other = PUBLIC.replace("AAAAICc", "AAAAIXx")
    assert printed_host_key(CONSOLE + CONSOLE.replace(PUBLIC, other)) == PUBLIC

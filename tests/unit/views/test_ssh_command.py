"""The words of `ssh` for each way in which a fleet declares a host."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fleetform.model.instance import Instance, InstanceState
from fleetform.views.ssh_command import known_hosts_lines, ssh_words


def host(**endpoint: Any) -> Instance:
    return Instance(
        "u1", "gpu-0", "gpu", 0, InstanceState.READY, provider="ssh", endpoint=endpoint,
        host_key="ssh-ed25519 AAAA",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ({"hostname": "node1"}, ["--", "node1"]),
        (
            {"hostname": "node1", "port": 2222, "user": "me", "identity_file": "~/.ssh/lab"},
            ["-p", "2222", "-l", "me", "-i", "/home/me/.ssh/lab", "--", "node1"],
        ),
        (
            {"hostname": "node1", "proxy_jump": {"hostname": "gate", "user": "me", "port": 22}},
            ["-J", "me@gate:22", "--", "node1"],
        ),
        (
            {"hostname": "node1", "proxy_jump": {"hostname": "fd00::1"}},
            ["-J", "[fd00::1]", "--", "node1"],
        ),
        (
            {"hostname": "n", "proxy_jump": {"hostname": "gate", "identity_file": "/a b/100%"}},
            ["-o", "ProxyCommand=ssh -W [%h]:%p -i '/a b/100%%' -- gate", "--", "n"],
        ),
    ],
)
def test_fields_are_options(endpoint: dict[str, Any], words: list[str]) -> None:
    """Those that are absent are left to the user's configuration."""
    assert ssh_words(host(**endpoint), home="/home/me") == ["ssh", *words]


def test_a_configuration_elsewhere_is_named_unless_none_is_wanted() -> None:
    """`openssh_config: off` holds also for a home that OpenSSH does not know."""
    words = ssh_words(host(hostname="n"), home="/h", config="/h/.ssh/config")
    assert words == ["ssh", "-F", "/h/.ssh/config", "--", "n"]
    off = host(hostname="n", openssh_config="off")
    assert ssh_words(off, home="/h", config="/h/.ssh/config") == ["ssh", "-F", "none", "--", "n"]


def test_a_command_reaches_the_host_as_it_was_typed() -> None:
    """One word is a line of shell; several keep their bounds."""
    assert ssh_words(host(hostname="n"), ["df -h | tail"], home="/")[-1] == "df -h | tail"
    assert ssh_words(host(hostname="n"), ["echo", "a b"], home="/")[-1] == "echo 'a b'"


def test_the_key_of_the_first_use_is_checked() -> None:
    """Under a name of the host's own, since addresses come again."""
    one = host(hostname="n", host_keys="first-use")
    words = ssh_words(one, home="/", known_hosts="/state of 1%/known")
    assert words[1:-2] == [
        "-o", "HostKeyAlias=fleetform-u1",
        "-o", 'UserKnownHostsFile="/state of 1%%/known"',
        "-o", "StrictHostKeyChecking=yes",
    ]  # fmt: skip
    assert known_hosts_lines(one) == "fleetform-u1 ssh-ed25519 AAAA\n"


def test_a_host_that_replaces_its_key_may_have_both() -> None:
    """Until the new key is proven, OpenSSH accepts the first one as well."""
    one = dataclasses.replace(host(hostname="n"), host_key="ssh-ed25519 AAAA\nssh-ed25519 BBBB")
    both = "fleetform-u1 ssh-ed25519 AAAA\nfleetform-u1 ssh-ed25519 BBBB\n"
    assert known_hosts_lines(one) == both

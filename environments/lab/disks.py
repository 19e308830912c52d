"""The files of a host: folders, users and keys of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path

from processes import call

PLAIN_USER = "lab"

SSHD_CONFIG = """\
ListenAddress 0.0.0.0
AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/lab_keys
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


def install(root: Path, name: str) -> None:
    """Make the folders of a host's disk, with users and an identity of their own."""
    root.mkdir()
    for folder, mode in (
        ("home", 0o755), ("mnt", 0o755), ("root", 0o700), ("srv", 0o755), ("var", 0o755),
        ("var/cache", 0o755), ("var/lib", 0o755), ("var/log", 0o755), ("var/tmp", 0o1777),
    ):  # fmt: skip
        (root / folder).mkdir()
        (root / folder).chmod(mode)
    (root / "var/log/lastlog").touch()
    (root / "var/run").symlink_to("/run")
    (root / "var/lock").symlink_to("/run/lock")
    etc = root / "etc"
    call("cp", "-a", "/etc", str(etc))
    (etc / "ssh").mkdir(exist_ok=True)
    # Keys of this machine; a login that is closed here; its commands at boot; servers that no
    # host reaches.
    for path in (
        *(etc / "ssh").glob("ssh_host_*"),
        *(etc / file for file in ("nologin", "rc.local", "resolv.conf")),
    ):
        path.unlink(missing_ok=True)
    for file, text in (
        ("hostname", f"{name}\n"),
        ("machine-id", f"{uuid.uuid4().hex}\n"),
        ("resolv.conf", ""),
        ("ssh/sshd_config", SSHD_CONFIG),
    ):
        (etc / file).unlink(missing_ok=True)
        (etc / file).write_text(text)
    add_users(etc, root / "home")
    make_key(etc / "ssh/ssh_host_ed25519_key")


def install_machine(root: Path, name: str, common: Path) -> None:
    """Make the files in which a machine differs from the root folder of all machines."""
    root.mkdir()
    for folder, mode in (("etc", 0o755), ("etc/ssh", 0o755), ("home", 0o755)):
        (root / folder).mkdir()
        (root / folder).chmod(mode)
    for file in ("passwd", "group", "shadow"):
        shutil.copy2(common / "etc" / file, root / "etc" / file)
    (root / "etc/hostname").write_text(f"{name}\n")
    (root / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
    (root / "etc/resolv.conf").write_text("")
    add_users(root / "etc", root / "home")
    make_key(root / "etc/ssh/ssh_host_ed25519_key")


def add_users(etc: Path, homes: Path) -> None:
    """Add the plain user, and let both users sign in with a key: sshd refuses a locked account."""
    tables = {}
    for file in ("passwd", "group", "shadow"):
        with contextlib.suppress(FileNotFoundError):
            rows = (etc / file).read_text().splitlines()
            tables[file] = [row for row in rows if row.split(":")[0] != PLAIN_USER]
    taken = {row.split(":")[2] for file in ("passwd", "group") for row in tables[file]}
    number = next(number for number in range(1000, 60000) if str(number) not in taken)
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    home = f"/home/{PLAIN_USER}"
    tables["passwd"].append(f"{PLAIN_USER}:x:{number}:{number}::{home}:{shell}")
    tables["group"].append(f"{PLAIN_USER}:x:{number}:")
    tables["shadow"] = [row for row in tables["shadow"] if not row.startswith("root:")]
    tables["shadow"] += [f"{user}:*:20000:0:99999:7:::" for user in ("root", PLAIN_USER)]
    for file, rows in tables.items():
        (etc / file).write_text("\n".join(rows) + "\n")
    folder = homes / PLAIN_USER
    folder.mkdir(mode=0o755)
    os.chown(folder, number, number)


def make_key(path: Path) -> None:
    """Make a key pair, or replace the one that is there."""
    new = path.with_name("new_key")
    for file in (new, new.with_suffix(".pub")):
        file.unlink(missing_ok=True)
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(new))
    new.replace(path)
    new.with_suffix(".pub").replace(path.with_name(f"{path.name}.pub"))

"""
The program with which a host makes a host key of its own, sent over SSH to the host's own Python.

It runs on the host as root with Python 3.9 or newer, imports the standard library only, and is called
as `run(REQUEST)` with the name of an operation and its arguments. It prints one JSON object: the
answer, or `error` with a sentence for people, and `advice`. Each operation may be repeated, and cut
off at any moment. No private key leaves the host, or is an argument of a command.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any

FOLDER = "/etc/ssh"

_HOST_KEY = "ssh_host_ed25519_key"
_NEW_KEY = "fleetform_host_key"
"""The key that the host has made, until its SSH server uses it."""

_SESSION = re.compile(rb"sshd: [^/]")
"""Begins the command line of a process of sshd that serves one connection, and not all of them."""


class Refused(Exception):
    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.answer = {"error": message, "advice": advice}


def run(request: dict[str, Any]) -> None:
    """Carry out one operation and print its answer."""
    os.umask(0o077)
    try:
        _check_root()
        answer = _OPERATIONS[request["operation"]](request)
    except Refused as refusal:
        answer = refusal.answer
    except OSError as error:
        answer = {"error": f"{error.filename}: {error.strerror}", "advice": "look at the host"}
    sys.stdout.write(json.dumps(answer) + "\n")


def report(request: dict[str, Any]) -> dict[str, Any]:
    """Tell the public half of the host's own key, which is made where there is none."""
    current = _public_half(_path(_HOST_KEY))
    if current and current != request["first"]:
        return {"key": current}
    made = _public_half(_path(_NEW_KEY))
    if not made:
        _check_server()
        _make_key(_path(_NEW_KEY))
        made = _public_half(_path(_NEW_KEY))
    return {"key": made}


def install(request: dict[str, Any]) -> dict[str, Any]:
    """Let the SSH server use the host's own key in place of the first one."""
    path, new = _path(_HOST_KEY), _path(_NEW_KEY)
    if _public_half(path) != request["own"]:
        if _public_half(new) != request["own"]:
            raise Refused("the host does not have the key that it reported", "create it again")
        _check_server()
        # Until the new one is written, sshd reads the public half from the private one.
        _remove(f"{path}.pub")
        os.rename(new, path)
    with open(f"{path}.pub", "w", encoding="ascii") as file:
        file.write(f"{request['own']}\n")
    os.chmod(f"{path}.pub", 0o644)
    _remove(f"{new}.pub")
    _sync(FOLDER)
    # Also if the key was replaced before: the earlier call may have been killed at this line.
    server = _server()
    if server is not None:
        os.kill(server, signal.SIGHUP)
    return {}


_OPERATIONS = {"report": report, "install": install}


def _check_root() -> None:
    if os.geteuid() != 0:
        raise Refused("the host key can be replaced by root only", "set `become: sudo`")


def _path(name: str) -> str:
    return os.path.join(FOLDER, name)


def _make_key(path: str) -> None:
    # Complete before it has its name, and on the disk before anyone hears of it.
    with tempfile.TemporaryDirectory(prefix=".fleetform-", dir=FOLDER) as folder:
        made = os.path.join(folder, "key")
        command = [_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", made]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"ssh-keygen fails: {done.stderr.strip()[-300:]}", "look at the host")
        _sync(made)
        os.rename(made, path)
    _sync(FOLDER)


def _public_half(path: str) -> str:
    """Return type and key of a private key; empty where there is none."""
    if not os.path.exists(path):
        return ""
    command = [_program("ssh-keygen"), "-y", "-f", path]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return " ".join(done.stdout.split()[:2]) if done.returncode == 0 else ""


def _check_server() -> None:
    """Refuse to change anything where sshd would not start again with its present configuration."""
    command = [_program("sshd"), "-t"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(
            f"sshd refuses its own configuration: {done.stderr.strip()[-300:]}",
            "correct it on the host",
        )


def _server() -> int | None:
    """
    Return the process of sshd that listens, which is above this one; None where systemd listens.

    It reads its keys anew when it is hung up, and open connections go on (sshd(8)). A server that
    systemd starts for each connection reads them for each.
    """
    found = None
    pid = os.getppid()
    while pid > 0:
        name, above = _name_and_parent(pid)
        if name == "sshd":
            found = pid
        pid = above
    if found is None:
        return None
    with open(f"/proc/{found}/cmdline", "rb") as file:
        return None if _SESSION.match(file.read()) else found


def _name_and_parent(pid: int) -> tuple[str, int]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        head, _, rest = file.read().rpartition(")")
    # The name is in brackets and may itself have any of these characters: proc(5).
    return head.partition("(")[2], int(rest.split()[1])


def _program(name: str) -> str:
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin")
    if path is None:
        raise Refused(f"the host has no {name}", "install OpenSSH on the image")
    return path


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

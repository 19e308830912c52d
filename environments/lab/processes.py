"""Processes of the lab, and the programs of this machine that it calls."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "ssh-keyscan": "openssh-client",
    "sshd": "openssh-server",
    "unshare": "util-linux",
}
PATIENCE_SECONDS = 30.0


class LabError(Exception):
    """What is wrong, and the next command."""

    code = 1


class Process(NamedTuple):
    """A process, by its id and the moment it began: an id alone may belong to another one later."""

    pid: int
    began: int
    """In clock ticks since the machine booted."""


def read_process(pid: int) -> tuple[Process, str, int] | None:
    """Return a process with its state and its parent; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name is in brackets and may itself have any of these characters: proc(5).
    fields = text.rpartition(")")[2].split()
    return Process(pid, int(fields[19])), fields[0], int(fields[1])


def is_alive(process: Process) -> bool:
    found = read_process(process.pid)
    return found is not None and found[0] == process and found[1] not in "ZX"


def find_child(parent: Process) -> Process | None:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            found = read_process(int(path.name))
            if found is not None and found[2] == parent.pid:
                return found[0]
    return None


def end(process: Process) -> None:
    """Kill a process; returns when it is not alive."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # The descriptor stays with one process, so what is checked now is what is killed.
            if is_alive(process):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
    wait_for(lambda: not is_alive(process), f"process {process.pid} does not end")


def wait_for(
    condition: Callable[[], object], failure: str, *, seconds: float = PATIENCE_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{failure} within {seconds:.0f} s")
        time.sleep(0.005)


def try_call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def call(*words: str) -> str:
    done = try_call(*words)
    if done.returncode:
        raise LabError(f"`{' '.join(words)}` failed:\n{done.stderr.strip()}")
    return done.stdout


def find_program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")
    if found is None:
        raise LabError(
            f"{name} is not installed; as root on Debian, run `apt-get install {PROGRAMS[name]}`"
        )
    return found


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other command works on the lab; a killed one holds nothing."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

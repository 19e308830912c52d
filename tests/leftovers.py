"""
What a test's folder still has running when the test is over, and how that is ended.

An agent, its spawner and its jobs' supervisors all have the agent's root in their command line.
A job's own processes have it in their environment, or work in a folder of the test. A test's folder
is used by no other test, so a process that names it belongs to the test.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

GRACE_SECONDS = 1.0
"""An agent ends at once when it is asked; what its jobs do need not be waited for."""

PATIENCE_SECONDS = 20.0


def processes_naming(folder: Path) -> list[int]:
    """Return the processes that name this folder, or something in it, as `_names` says."""
    own = str(os.getpid())
    # Read again and again by those who wait: not by `Path`, which takes five times as long.
    return sorted(
        int(name)
        for name in os.listdir("/proc")  # noqa: PTH208 -- see above
        if name.isdigit() and name != own and _names(f"/proc/{name}", bytes(folder))
    )


def end_manager(state: Path) -> None:
    """Ask whoever drives the runs of a state home's environments to end."""
    for lock in state.glob("environments/*/manager.lock"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            pid = int(json.loads(lock.read_text())["pid"])
            if b"fleetform" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGTERM)


def end_background(state: Path) -> None:
    """End the background controllers of a state home's environments, whatever their ledger is."""
    for number, seconds in ((signal.SIGTERM, PATIENCE_SECONDS), (signal.SIGKILL, PATIENCE_SECONDS)):
        deadline = time.monotonic() + seconds
        while found := _background(state):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)


def _background(state: Path) -> list[int]:
    found = []
    for pid in processes_naming(state / "environments"):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"controller" in words:
                found.append(pid)
    return found


def end_agents(state: Path) -> None:
    """
    End a state home's background controllers, agents and jobs; returns when none of them is alive.

    The controllers first: they would start the agents again.

    They are asked by the ids that they wrote down, which may be stale: only one that still names
    its root gets the signal. An agent leaves running jobs to their supervisors; what is left
    after a moment is killed.
    """
    # Most tests have started nothing, and one look is enough for them.
    if not processes_naming(state):
        return
    end_background(state)
    # A command that a test still runs has the state home in its environment, and is no agent.
    hosts = state / "hosts"
    _signal(_written_pids(state), hosts, signal.SIGTERM)
    if _are_gone(hosts, GRACE_SECONDS):
        return
    _signal(processes_naming(hosts), hosts, signal.SIGKILL)
    assert _are_gone(hosts, PATIENCE_SECONDS), f"{processes_naming(hosts)} live on in {hosts}"


def end_processes(folder: Path) -> list[str]:
    """
    Kill whatever names this folder and does not end by itself; returns their command lines.

    A test's own folder is in them, and so which test it was.
    """
    if _are_gone(folder, GRACE_SECONDS):
        return []
    _are_gone(folder, PATIENCE_SECONDS)
    left = []
    for pid in processes_naming(folder):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
            os.kill(pid, signal.SIGKILL)
            left.append(f"{pid}: " + words.replace(b"\0", b" ").decode(errors="replace"))
    return left


def _written_pids(state: Path) -> list[int]:
    found = []
    for file in state.glob("hosts/*/*/agent.pid"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(file.read_text()))
    return found


def _signal(pids: Iterable[int], folder: Path, number: signal.Signals) -> None:
    for pid in set(pids).intersection(processes_naming(folder)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _are_gone(folder: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while processes_naming(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _names(process: str, folder: bytes) -> bool:
    """
    Tell whether a process has the folder in its command line or environment, or works in it.

    A job's shell ignores what it likes and has no path in its command line. Once its supervisor is
    killed no process of ours would end it, so it must be found by what it was started with.
    """
    try:
        for file in ("cmdline", "environ"):
            with open(f"{process}/{file}", "rb", buffering=0) as words:  # noqa: PTH123 -- as above
                text = words.read()
            # Most name no such folder anywhere, and need not be taken apart.
            if folder in text and any(_is_below(word, folder) for word in text.split(b"\0")):
                return True
        place = os.readlink(os.fsencode(f"{process}/cwd"))  # noqa: PTH115 -- as above
    except OSError:
        return False
    return place == folder or place.startswith(folder + b"/")


def _is_below(word: bytes, folder: bytes) -> bool:
    value = word.rpartition(b"=")[2]
    return value == folder or folder + b"/" in word

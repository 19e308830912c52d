"""
Exclude two changes of one stack on this machine, and prove that an earlier one is over.

Two locks of files, both freed by the kernel. The runner alone holds `runner.lock`, and writes its
process id into it. The CLI and its plugins inherit `stack.lock`: a runner that gets this lock has
proof that no process of an earlier change lives. Processes that have outlived their runner are ended here.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fleetform.agents.host import processes
from fleetform.spec.private_folder import make_private_folder

__all__ = ["StackBusy", "StackLock", "runner_of", "take_stack"]

_SWEEP_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Runner:
    """The process that changes a stack, as it wrote itself into `runner.lock`."""

    pid: int
    started_at_ms: int


class StackBusy(Exception):
    """Another runner changes the stack; `runner` is None in the moment before it wrote its name."""

    def __init__(self, runner: Runner | None) -> None:
        super().__init__(f"runner {runner.pid if runner else '?'} changes the stack")
        self.runner = runner


@dataclass(frozen=True, slots=True)
class StackLock:
    """Held until this process ends; `inherited` is the descriptor for the CLI."""

    descriptor: int
    inherited: int


def take_stack(folder: Path, *, now_ms: int, grace_seconds: float) -> StackLock:
    """
    Take both locks of a stack.

    Args:
        folder: The stack's own.
        now_ms: Written down for those who are refused.
        grace_seconds: For how long processes that have outlived their runner may finish what they
            do; then they are killed.

    Raises:
        StackBusy: Another runner lives.
    """
    make_private_folder(folder)
    descriptor = _open(folder / "runner.lock")
    if not _try(descriptor):
        os.close(descriptor)
        raise StackBusy(runner_of(folder))
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(Runner(os.getpid(), now_ms))).encode(), 0)
    path = folder / "stack.lock"
    inherited = _open(path)
    if not _try(inherited):
        _end_survivors(path, inherited, grace_seconds)
    return StackLock(descriptor, inherited)


def runner_of(folder: Path) -> Runner | None:
    """Return the runner that wrote its name into the lock last."""
    try:
        return Runner(**json.loads((folder / "runner.lock").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _end_survivors(path: Path, inherited: int, grace_seconds: float) -> None:
    # The CLI alone: it lets its plugins finish calls that have begun and writes what they returned.
    processes.send([pid for pid in _holders(path) if _is_cli(pid)], signal.SIGINT)
    deadline = time.monotonic() + grace_seconds
    while not _try(inherited):
        if time.monotonic() > deadline:
            processes.send(_holders(path), signal.SIGKILL)
        time.sleep(_SWEEP_SECONDS)


def _is_cli(pid: int) -> bool:
    try:
        return processes.command_line(pid)[0].endswith(b"pulumi")
    except OSError:
        return False


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holders(path: Path) -> list[int]:
    """Return the other processes that have the file open."""
    wanted = path.resolve()
    others = (pid for pid in processes.all_pids() if pid != os.getpid())
    return [pid for pid in others if wanted in _open_files(pid)]


def _open_files(pid: int) -> set[Path]:
    try:
        return {one.readlink() for one in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return set()  # It has ended just now or opens files, or it is of another user.

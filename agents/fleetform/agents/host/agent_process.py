"""
The process that is the agent: its lock, and the spawner that it forks before it grows.

Nothing large is imported before that: what is mapped then, every job's supervisor has mapped too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import socket

from fleetform.agents.host import background, job_environment, layout, orphans, spawner

TAKEN = "taken"
"""What is said where the root has an agent."""


def become(root: str, idle_exit: float | None, say: background.Report, log: str | None) -> None:
    """Become the agent of this root; says `taken` where there is one, and nothing when ready."""
    os.chdir(root)
    os.umask(0o077)
    job_environment.clean(os.environ)
    lock = os.open(layout.AGENT_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(TAKEN)
        return
    found, why = _clear_up(root)
    if why:
        say(why)
        return
    _write_pid()
    background.redirect(log)
    channel, pid, hello = _fork_spawner(lock)

    # From here on this process may grow.
    _raise_open_files()
    import logging

    from fleetform.agents.host import startup
    from fleetform.agents.host.daemon import Settings

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    settings = Settings(root, idle_exit, pid, hello[1], tuple(hello[2:]))
    startup.run(settings, channel, lambda: say(""), is_reinstalled=found)


def _clear_up(root: str) -> tuple[bool, str]:
    """
    End what is at work in a folder that was this root, and is gone.

    Returns:
        Whether there was any; why no agent can begin here, or nothing.
    """
    found = orphans.find(root)
    if found.moved:
        pids = ", ".join(str(pid) for pid, _ in found.moved)
        return False, (
            f"this folder was moved to {os.path.dirname(os.path.dirname(found.moved[0][1]))}, and its jobs"
            f" still run there: move it back to {root}, or end their supervisors (pid {pids})"
        )
    left = orphans.end_removed(root, found.removed)
    if left:
        pids = ", ".join(map(str, left))
        return False, f"processes of a removed folder cannot be ended (pid {pids})"
    return bool(found.removed), ""


def _fork_spawner(lock: int) -> tuple[socket.socket, int, list[str]]:
    """Fork the spawner and wait until it has its lock; returns our end, its pid and its report."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        spawner.run(its, (lock,))
    its.close()
    hello = ours.recv(spawner.PACKET_BYTES).decode().split("\n")
    if hello[0] != "ready":
        raise RuntimeError("the spawner ended before it was ready")
    return ours, pid, hello


def _raise_open_files() -> None:
    """
    Have as many files open as the host lets us have: each job takes two, and many come at once.

    With 256, as some hosts give, three hundred jobs were begun and never heard of. Jobs get what
    the host gave, for the spawner has been forked: a program that uses `select` fails with more.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _write_pid() -> None:
    with open(layout.AGENT_PID, "w", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")

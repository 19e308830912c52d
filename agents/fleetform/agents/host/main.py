"""
The agent's commands: `daemon`, `connect`, `probe`, `version`.

Nothing large is imported before the spawner has been forked: what is mapped then, every job's
supervisor has mapped too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import socket
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.agents.host import (
    VERSION,
    background,
    job_environment,
    layout,
    orphans,
    relay,
    spawner,
)

if TYPE_CHECKING:
    # Imported after the spawner, whose objects then lie together: fewer pages for a supervisor.
    import argparse

_IDLE_EXIT_SECONDS = 600
"""An idle local environment leaves no process behind; starting again takes 0.2 s."""

_OTHER_SECONDS = 10.0
"""How long to wait for an agent that holds the lock and does not listen yet."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "version":
        print(VERSION)  # noqa: T201 -- its output is what the command is for
        return 0
    if arguments.command == "probe":
        return _probe()
    if arguments.command == "connect":
        return _connect(arguments.root)
    return _daemon(arguments)


def _parser() -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="fleetform-agent", description="Run the agent of a host, or ask it."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    daemon = commands.add_parser("daemon", help="run the agent of a root folder")
    daemon.add_argument("--root", required=True, help="the folder with all files of the agent")
    daemon.add_argument(
        "--idle-exit",
        type=float,
        default=_IDLE_EXIT_SECONDS,
        metavar="SECONDS",
        help="end after so many seconds without jobs and connections; 0: never",
    )
    daemon.add_argument("--foreground", action="store_true", help="stay in the foreground")
    connect = commands.add_parser("connect", help="connect standard input and output to the agent")
    connect.add_argument("--root", required=True)
    commands.add_parser("probe", help="print the hardware of this host as JSON")
    commands.add_parser("version", help="print the agent's version")
    return parser


def _probe() -> int:
    import json

    from fleetform.agents.host import gpus, host_report, limits
    from fleetform.agents.protocol.messages import to_json

    report = host_report.report(os.getcwd(), limits.available(), gpus.detect())
    print(json.dumps(to_json(report), indent=2))  # noqa: T201 -- as above
    return 0


def _connect(root: str) -> int:
    try:
        connection = relay.open_socket(root)
    except OSError as error:
        return _fail(f"no agent listens in {root}: {error}")
    with connection:
        relay.relay(connection, 0, 1)
    return 0


# -- daemon -----------------------------------------------------------------------------------


def _daemon(arguments: argparse.Namespace) -> int:
    root = os.path.abspath(arguments.root)
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        os.chmod(root, 0o700)
    except OSError as error:
        return _fail(f"the agent's root folder cannot be created: {error}")
    idle_exit = arguments.idle_exit or None
    if arguments.foreground:
        outcome: list[str] = []
        _be_agent(root, idle_exit, outcome.append, log=None)
        report = outcome[0] if outcome else ""
    else:
        report = background.detach(lambda say: _be_agent(root, idle_exit, say, layout.AGENT_LOG))
    if report == _TAKEN:
        return _await_other(root)
    return _fail(f"the agent could not start: {report}") if report else 0


_TAKEN = "taken"


def _await_other(root: str) -> int:
    """Another agent has this root: return once it listens, as if it had been started here."""
    deadline = time.monotonic() + _OTHER_SECONDS
    while time.monotonic() < deadline:
        try:
            relay.open_socket(root).close()
        except OSError:
            time.sleep(0.02)
        else:
            print(f"an agent runs in {root} already")  # noqa: T201 -- told on purpose
            return 0
    return _fail(f"another agent has the lock of {root} and does not listen: see agent.log there")


def _be_agent(root: str, idle_exit: float | None, say: background.Report, log: str | None) -> None:
    """Become the agent of this root; says `taken` where there is one, and nothing when ready."""
    os.chdir(root)
    os.umask(0o077)
    job_environment.clean(os.environ)
    lock = os.open(layout.AGENT_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(_TAKEN)
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


def _fail(message: str) -> int:
    sys.stderr.write(f"fleetform-agent: {message}\n")
    return 1

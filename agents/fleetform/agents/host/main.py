"""
The agent's commands: `daemon`, `connect`, `probe`, `version`.

Each imports what it needs: `connect` starts once for each connection of each host.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.agents.host import VERSION, layout, relay

if TYPE_CHECKING:
    import argparse

_IDLE_EXIT_SECONDS = 600
"""An idle local environment leaves no process behind; starting again takes 0.2 s."""

_OTHER_SECONDS = 10.0
"""How long to wait for an agent that holds the lock and does not listen yet."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["daemon"]:
        # Before argparse: the spawner's objects lie together, and a supervisor has fewer pages.
        importlib.import_module("fleetform.agents.host.agent_process")
    arguments = _parser().parse_args(words)
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


def _daemon(arguments: argparse.Namespace) -> int:
    from fleetform.agents.host import agent_process, background

    root = os.path.abspath(arguments.root)
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        os.chmod(root, 0o700)
    except OSError as error:
        return _fail(f"the agent's root folder cannot be created: {error}")
    idle_exit = arguments.idle_exit or None
    if arguments.foreground:
        outcome: list[str] = []
        agent_process.become(root, idle_exit, outcome.append, log=None)
        report = outcome[0] if outcome else ""
    else:
        report = background.detach(
            lambda say: agent_process.become(root, idle_exit, say, layout.AGENT_LOG)
        )
    if report == agent_process.TAKEN:
        return _await_other(root)
    return _fail(f"the agent could not start: {report}") if report else 0


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


def _fail(message: str) -> int:
    sys.stderr.write(f"fleetform-agent: {message}\n")
    return 1

"""`fleetform controller`: which process drives the runs, and how the one in the background ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import click

from fleetform.cli.command import directory_option, group, json_option
from fleetform.cli.failure import Failure, explain, report_bug
from fleetform.cli.screen import Screen, error_screen, screen
from fleetform.cli.tree import open_workspace, or_default
from fleetform.model.history import LogLevel

if TYPE_CHECKING:
    from fleetform.model.ports import Progress

_EXAMPLES = (
    ("fleetform controller show", "Show the process that drives the runs, and its log"),
    (
        "fleetform controller stop",
        "Stop the background controller; nothing drives its runs after that",
    ),
)


@group("controller", examples=_EXAMPLES)
def command() -> None:
    """
    Show the controller of this environment, or stop the background controller.

    A detached or interrupted apply leaves a background controller, which drives the runs to their
    end and then ends by itself. `apply` and `serve` take its place.
    """


@command.command("show", examples=_EXAMPLES[:1])
@directory_option
@json_option
def show(path: str | None, as_json: bool) -> None:
    """Show the process that drives the runs: its id, its start time and its log."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.controllers import read_controller
    from fleetform.views.controllers import controller_lines

    row = read_controller(open_workspace(or_default(path)))
    out = screen()
    if as_json:
        out.json(row)
        return
    for line in controller_lines(row, now_ms=SystemClock().now_ms()):
        out.line(line)
    if row is not None and row.warning:
        out.flush()
        error_screen().labelled("warning", row.warning)


@command.command("stop", examples=_EXAMPLES[1:])
@directory_option
def stop(path: str | None) -> None:
    """
    Stop the background controller.

    Running jobs continue on their hosts. Until `fleetform apply` or `fleetform serve` drives the
    runs, nothing new starts, nothing is retried, and no stop is sent to hosts.
    """
    from fleetform.cli.background import stop_background

    stop_background(open_workspace(or_default(path)))


@command.command("run", hidden=True, examples=(("fleetform controller run FOLDER", "Run one"),))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--who", default="", help="User for whom it runs.")
@click.option("--name", default="", help="Name of the environment.")
@click.option(
    "--variable", "variables", multiple=True, help="Name of an environment variable that it has."
)
@click.option("--warning", default="", help="Reason why the machine may end it early.")
def run(folder: Path, who: str, name: str, variables: tuple[str, ...], warning: str) -> int:
    """Run as the background controller of the environment whose state is in FOLDER."""
    if os.fork():
        # The command that started this one waits for it, and never for the other.
        os._exit(0)
    os.setsid()
    return _drive(folder, who, name, variables, warning)


def _drive(folder: Path, who: str, name: str, variables: tuple[str, ...], warning: str) -> int:
    import asyncio

    from fleetform.app.background import drive
    from fleetform.app.clock import SystemClock
    from fleetform.app.controllers import BackgroundStart
    from fleetform.app.workspace import Workspace
    from fleetform.cli.progress.plain import LogProgress
    from fleetform.spec.desired import Environment

    report = _Report()
    workspace = Workspace(Path("/"), Environment(name, folder.name))
    log = BoundedLog(workspace.paths.background_log)
    progress = LogProgress(Screen(cast("TextIO", log)), SystemClock())
    start = BackgroundStart(os.getpid(), variables, warning)
    progress.notice(
        f"background controller of {name} starts (pid {os.getpid()})", event="controller.started"
    )
    end = _End(progress)
    try:
        asyncio.run(
            drive(workspace, start, who=who, ready=report.ready, ended=end.say, progress=progress)
        )
    except Exception as error:  # noqa: BLE001 -- the process ends with it: its log has the reason
        end.say(error)
    else:
        end.say(None)
    if end.failure is None:
        return 0
    report.failed(end.failure.message, end.failure.advice)
    return int(end.failure.code)


class _End:
    """The last line of the log: why this process ends, said once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._is_said = False
        self.failure: Failure | None = None

    def say(self, error: Exception | None) -> None:
        if error is None:
            if not self._is_said:
                self._is_said = True
                self._progress.notice("background controller ends", event="controller.ended")
            return
        # An error after the usual end is a bug, and is in the log as well.
        if self.failure is not None:
            return
        self._is_said = True
        self.failure = explain(error) or report_bug(error)
        advice = f"; {self.failure.advice}" if self.failure.advice else ""
        self._progress.notice(
            f"background controller ends: {self.failure.message}{advice}",
            event="controller.failed",
            level=LogLevel.ERROR,
        )


class _Report:
    """One line for the process that waits for this one to begin, on what was standard output."""

    def __init__(self) -> None:
        self._descriptor = os.dup(1)

    def ready(self, other: str) -> None:
        self._say({"other": other})

    def failed(self, error: str, advice: str) -> None:
        self._say({"error": error, "advice": advice})

    def _say(self, report: dict[str, str]) -> None:
        if self._descriptor < 0:
            return
        # Who waited for it may have been ended meanwhile; the runs are driven all the same.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._descriptor, json.dumps(report).encode() + b"\n")
        os.close(self._descriptor)
        self._descriptor = -1


# The log of a process that may run for weeks: never more than two files.

BYTES_MAX = 1 << 20
"""Of each of the two files: some ten thousand lines."""


class BoundedLog(io.TextIOBase):
    """
    Writes to standard output and error, which it leads into the file.

    So what Python itself prints, such as a traceback, is there too. A full disk ends nothing: what
    cannot be written is left out.
    """

    def __init__(self, path: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._at_start = True
        self._open()

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            if self._at_start and os.fstat(1).st_size > self._bytes_max:
                self._path.replace(self._path.with_suffix(".log.1"))
                self._open()
            os.write(1, text.encode("utf-8", "backslashreplace"))
            self._at_start = text.endswith("\n")
        return len(text)

    def _open(self) -> None:
        descriptor = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        for number in (1, 2):
            os.dup2(descriptor, number)
        os.close(descriptor)

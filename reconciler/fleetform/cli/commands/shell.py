"""`fleetform shell`: a run for a terminal, which begins when it has its resources and ends with it."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import who_asks
from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.exit import SHELL_CODES, Exit
from fleetform.cli.failure import Refused
from fleetform.cli.interrupts import Interrupts
from fleetform.cli.screen import error_screen
from fleetform.cli.selection import Reread, one_run
from fleetform.cli.tree import directory_words, open_reader, open_to_write, or_default
from fleetform.model.run_state import FINAL, RunState

if TYPE_CHECKING:
    from fleetform.app.submit import Submission
    from fleetform.app.submitted_document import Setting
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.model.ports import RunHistory
    from fleetform.model.run import Run

_EXAMPLES = (
    ("fleetform shell", "Open a shell on any host that has room"),
    ("fleetform shell --gpu 1 --time 2h", "Open a shell with a GPU, for two hours at most"),
    ("fleetform shell --gpu H100:2 --cpus 8 --memory 64GB", "Say what the shell needs"),
    (
        "fleetform shell --fleet lab --keep",
        "Keep the run, with what runs in it, without its terminal",
    ),
)
_POLL_SECONDS = 0.1
_END_SECONDS = 30.0
"""How long it takes at most to see that the run has ended: its job looks twice a second."""


@make_command("shell", examples=_EXAMPLES, codes=SHELL_CODES)
@directory_option
@click.option("--gpu", metavar="GPUS", help="GPUs, such as 1 or H100:2.")
@click.option("--cpus", metavar="CPUS", help="CPU cores, such as 4.")
@click.option("--memory", metavar="SIZE", help="Memory, such as 16GB.")
@click.option("--fleet", metavar="NAME", help="Fleet whose hosts may run it.  [default: any]")
@click.option(
    "--time",
    "limit",
    default="8h",
    show_default=True,
    metavar="DURATION",
    help="Time after which the run ends, such as 2h.",
)
@click.option("-n", "--name", default="", metavar="NAME", help="Name of the run; it must be new.")
@click.option("--keep", is_flag=True, help="Keep the run when the terminal ends.")
def command(
    path: str | None,
    gpu: str | None,
    cpus: str | None,
    memory: str | None,
    fleet: str | None,
    limit: str,
    name: str,
    keep: bool,
) -> int:
    """
    Open a shell in a run of its own, with the resources that it needs.

    Submits a run as `fleetform submit` does, waits until it has its host, shows why it waits, and
    opens a shell in its job. The run ends with the shell, also if the terminal or this machine is
    lost. With --keep it lasts until its time is over: `fleetform exec NAME` opens another shell,
    and what runs in the background continues.

    `scp FILE NAME.fleetform:` copies files to it; see `fleetform ssh-config`.
    """
    from fleetform.app.interactive_run import document
    from fleetform.app.submit import prepare_submission, withdraw, write_submission
    from fleetform.cli.commands.submit import live_with_fleet, plan_submission, say_findings
    from fleetform.cli.exec_streams import has_terminal

    if not has_terminal():
        raise Refused(
            "standard input and output are no terminal",
            advice="`fleetform submit FILE` runs a script without one",
        )
    seconds = _seconds(limit)
    workspace = open_to_write(or_default(path, create=True))
    live = live_with_fleet(workspace)
    if live is None or not live.instances:
        raise Refused(
            f"the environment `{workspace.environment.name}` has no host to run on yet",
            advice=f"run `fleetform apply{directory_words(workspace)}` first: `shell` creates no fleets",
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shell.yaml"
        file.write_text(document(seconds, limit, keep=keep), encoding="utf-8")
        submission = prepare_submission(  # noqa: S604 -- `shell` looks variables up
            workspace,
            file,
            name=name,
            settings=_settings(gpu, cpus, memory, fleet),
            arguments=(),
            live=live,
            shell=lambda _: None,
            sends_file=False,
        )
        say_findings(submission)
        # From here on a document is there that has no run yet: no signal leaves it behind.
        with Interrupts() as interrupts:
            try:
                write_submission(workspace, submission)
                plan = plan_submission(workspace, submission)
                _apply(workspace, plan, interrupts)
            except BaseException:
                withdraw(workspace, submission)
                raise
            try:
                history = _await_start(workspace, submission)
            except KeyboardInterrupt:
                error_screen().line("")
                interrupts.shield(lambda: _stop(workspace, submission.key.name))
                return Exit.INTERRUPTED
    if history.run.state in FINAL:
        return _say_failed(history)
    return _open(workspace, submission, keep=keep)


def _seconds(limit: str) -> int:
    from fleetform.spec.quantities.duration import parse_duration

    try:
        return parse_duration(limit)
    except ValueError as problem:
        raise Refused(f"--time {limit}: {problem}") from problem


def _settings(
    gpu: str | None, cpus: str | None, memory: str | None, fleet: str | None
) -> list[Setting]:
    from fleetform.app.submitted_document import Setting

    resources = (("gpu", gpu, "--gpu"), ("cpu", cpus, "--cpus"), ("memory", memory, "--memory"))
    settings = [
        Setting(("resources", field), value, option)
        for field, value, option in resources
        if value is not None
    ]
    return [*settings, *([Setting(("fleets",), [fleet], "--fleet")] if fleet else [])]


def _apply(workspace: Workspace, plan: Plan, interrupts: Interrupts) -> None:
    """Submit the run, and leave a controller that drives it."""
    from fleetform.app.apply import apply_plan
    from fleetform.cli.background import leave
    from fleetform.cli.progress.plain import PlainProgress

    class Quiet(PlainProgress):
        def run_changed(self, run: Run, message: str) -> None:
            """Say nothing: other runs are not asked for, and this one is waited for next."""

    progress = Quiet(error_screen(), show_output=False)
    interrupts.run(apply_plan(workspace, plan, who=who_asks(), detach=True, progress=progress))
    interrupts.shield(lambda: leave(workspace))


def _await_start(workspace: Workspace, submission: Submission) -> RunHistory:
    """Return the run once it runs, or is over."""
    from fleetform.cli.wait_notices import WaitNotices

    with contextlib.closing(open_reader(workspace)) as reader:
        notices = WaitNotices(reader, error_screen())
        read = Reread(reader, lambda: one_run(reader, submission.key.name))
        while True:
            history = read()
            if history.run.state is RunState.RUNNING or history.run.state in FINAL:
                return history
            notices.look(history)
            time.sleep(_POLL_SECONDS)


def _say_failed(history: RunHistory) -> int:
    run = history.run
    error_screen().line(
        f"{run.name}: {run.state}{f': {run.message}' if run.message else ''}", "bad"
    )
    error_screen().labelled("help", f"`fleetform why {shlex.quote(run.name)}` says how it ended")
    return Exit.RUN_FAILED


def _stop(workspace: Workspace, name: str) -> None:
    """Stop the run, as `fleetform stop` does; what that prints says no more than that it has stopped."""
    command = ("stop", "-C", str(workspace.root), "--", name)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fleetform.cli.entry", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    say = error_screen()
    if done.returncode:
        say.labelled("error", f"{name} is not stopped: {done.stderr.strip()}")
    else:
        say.line(f"{name}: stopped", "note")


def _open(workspace: Workspace, submission: Submission, *, keep: bool) -> int:
    """Open the terminal; returns the exit code of its shell."""
    from fleetform.app.interactive_run import TERMINAL
    from fleetform.cli.commands.exec import run_command
    from fleetform.cli.running_job import find_job

    say, name = error_screen(), submission.key.name
    with contextlib.closing(open_reader(workspace)) as reader:
        found = find_job(reader, name)
    say.line(f"{name}: on {found.instance.name}; `exit` ends the shell", "note")
    say.flush()
    try:
        return run_command(workspace, found.instance, found.job, TERMINAL, has_pipes=False)
    finally:
        # The terminal may be closed: what is said is lost then.
        with contextlib.suppress(OSError):
            if keep:
                where = directory_words(workspace, finds_default=True)
                say.line(f"{name} continues", "note")
                say.labelled(
                    "help",
                    f"`fleetform exec{where} {name}` opens another shell, `fleetform stop{where} {name}`"
                    " ends the run",
                )
            else:
                _say_end(workspace, name)
            say.flush()


def _say_end(workspace: Workspace, name: str) -> None:
    """Wait until the run is over, so that its resources are free when this command ends."""
    deadline = time.monotonic() + _END_SECONDS
    with contextlib.closing(open_reader(workspace)) as reader:
        while (history := one_run(reader, name)).run.state not in FINAL:
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
    error_screen().line(f"{name}: {history.run.state}", "note")

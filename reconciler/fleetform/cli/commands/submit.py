"""`fleetform submit`: from an idea to its log, in one command."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import parse_setting, who_asks
from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.editing import shown
from fleetform.cli.exit import SUBMIT_CODES, Exit
from fleetform.cli.failure import Refused
from fleetform.cli.interrupts import Interrupts
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.run_output import EndLast, RunOutput
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import read_live
from fleetform.cli.tree import directory_words, open_to_write, or_default, print_findings
from fleetform.model.figures import counted, first_of
from fleetform.spec.names import EXPRESSION_MARK

if TYPE_CHECKING:
    from fleetform.app.submit import Submission
    from fleetform.app.submitted_document import Setting
    from fleetform.app.workspace import Workspace
    from fleetform.model.live import Live
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader
    from fleetform.spec.findings import Finding
    from fleetform.views.runs import RunRow

_EXAMPLES = (
    ("fleetform submit train.py -e LR=0.1", "Run a script with the variable LR"),
    ("fleetform submit train.py -s resources.gpu=H100:2", "Run it on GPUs"),
    ("fleetform submit train.py -e WANDB_PROJECT", "Pass a variable of this shell to the run"),
    ("fleetform submit job.sh -n baseline", "Run a batch script of Slurm as the run baseline"),
    ("fleetform submit train.dstack.yml --detach", "Submit a document, and do not follow the run"),
    ("fleetform submit train.py --format json", "Run a script, and print as JSON how it ended"),
)


# The line names what a person checks at a glance.
_FILES_SHOWN_MAX = 8


@make_command("submit", examples=_EXAMPLES, codes=SUBMIT_CODES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, metavar="[-- ARG...]")
@directory_option
@click.option(
    "-n",
    "--name",
    default="",
    metavar="NAME",
    help="Name of the run; it must be new.  [default: the name in FILE if it is new, else one such as"
    " train-k2f7]",
)
@click.option(
    "-e",
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable; NAME alone takes the value from this shell. Values are stored"
    " in plaintext.",
)
@click.option(
    "-s",
    "--set",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set a field of the run's document, such as resources.gpu=H100.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Send this file or folder too, even if git ignores it.",
)
@click.option("--detach", is_flag=True, help="Do not follow the run.")
@json_option
def command(
    file: Path,
    arguments: tuple[str, ...],
    path: str | None,
    name: str,
    variables: tuple[str, ...],
    fields: tuple[str, ...],
    files: tuple[Path, ...],
    detach: bool,
    as_json: bool,
) -> int:
    """
    Run FILE with the files that it needs, and follow the run.

    FILE is a document with one run, a batch script of Slurm, or another script. ARG are arguments
    of the script; in the commands of a document they replace `${{ run.args }}`.

    The job gets a copy of these files, as they are now. In a git repository: all files that git
    tracks or does not ignore. Outside git: FILE and its `files:`. For a batch script, also the
    files that it uses.

    The run gets PATH, VIRTUAL_ENV and CONDA_PREFIX of this shell, unless FILE or -e sets them. It
    ends after 8 hours, unless FILE or -s sets `max_duration`.

    Outside an environment, the run belongs to the default environment, which `submit` creates if
    it does not exist. The run needs no review. Its document is in the folder scratch of the
    environment, which git ignores. A later `submit` removes documents that are two weeks old;
    `fleetform keep` moves one to the reviewed documents.

    After Ctrl-C, and with --detach, a background controller drives the run (`fleetform
    controller`). With --format json, prints no output of the run (`fleetform logs` prints it) and,
    at the end, its result as JSON.
    """
    from fleetform.app.submit import prepare_submission, withdraw, write_submission

    settings = (*map(_variable, variables), *map(_field, fields))
    workspace = open_to_write(or_default(path, create=True))
    live = live_with_fleet(workspace)
    if live is None or not live.instances:
        raise Refused(
            f"the environment `{workspace.environment.name}` has no host to run on yet",
            advice=f"run `fleetform apply{directory_words(workspace)}` first: `submit` creates no fleets",
        )
    submission = prepare_submission(
        workspace,
        file,
        name=name,
        settings=settings,
        arguments=arguments,
        live=live,
        shell=_value_in_shell,
        files=files,
    )
    say_findings(submission)
    # From here on a document is there that has no run yet: no signal leaves it behind.
    with Interrupts() as interrupts:
        try:
            write_submission(workspace, submission)
        except KeyboardInterrupt:
            withdraw(workspace, submission)
            raise
        try:
            _say_submitted(submission)
            plan = plan_submission(workspace, submission)
        except BaseException:
            withdraw(workspace, submission)
            raise
        return _carry_out(workspace, plan, submission, interrupts, detach=detach, as_json=as_json)


def live_with_fleet(workspace: Workspace) -> Live | None:
    """Read the ledger; in the default environment, create its fleet first where there is none."""
    from fleetform.app.workspace import is_created_here

    live = read_live(workspace)
    if (live is None or not live.instances) and is_created_here(workspace.root):
        from fleetform.cli.apply_flow import apply_default_fleet

        apply_default_fleet(workspace)
        live = read_live(workspace)
    return live


def _variable(text: str) -> Setting:
    from fleetform.app.submitted_document import Setting

    name, equals, value = text.partition("=")
    if not name:
        raise Refused(f"`{text}` sets no variable", advice="write -e NAME=VALUE, or -e NAME")
    if not equals:
        found = _value_in_shell(name)
        if found is None:
            raise Refused(
                f"`{name}` is not set in this shell",
                advice=f"`export {name}=…` first, or write -e {name}=VALUE",
            )
        value = found
    return Setting(("env", name), value, f"-e {name}")


def _field(text: str) -> Setting:
    from fleetform.app.submitted_document import Setting

    path, value = parse_setting(text)
    return Setting(path, value, f"-s {'.'.join(map(str, path))}")


def _value_in_shell(name: str) -> str | None:
    """
    Take a variable as this shell has it, which keeps its value out of history and process list.

    Raises:
        Refused: It is not text. Its value is in no message.
    """
    value = os.environ.get(name)
    if value is None:
        return None
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise Refused(
            f"the value of `{name}` in this shell is not UTF-8, and a document is text",
            advice="encode it, for example with `base64`",
        ) from problem
    # A value of the shell is never an expression of a document, whatever it looks like.
    return value.replace(EXPRESSION_MARK, f"${EXPRESSION_MARK}")


def say_findings(submission: Submission) -> None:
    """Print warnings, and each note in one line; secrets are named before they are written."""
    from fleetform.spec.findings import Level

    say = error_screen()
    print_findings([one for one in submission.findings if one.level is not Level.NOTE])
    if submission.secrets:
        names = ", ".join(f"`{name}`" for name in submission.secrets)
        say.labelled(
            "warning",
            f"the value of {names} is stored in plaintext: in {submission.file}, in the ledger and on"
            " the host of the job",
        )
        say.labelled(
            "help",
            "to avoid this, let the commands read it from a file that only the job's account can read",
        )
    for one in submission.findings:
        if one.level is Level.NOTE:
            say.labelled("note", _in_one_line(one))
    say.flush()


def _say_submitted(submission: Submission) -> None:
    say = error_screen()
    bundle = submission.bundle
    if submission.unsent:
        paths = [quote(shown(one)) for one in submission.unsent]
        verb = "is" if len(paths) == 1 else "are"
        options = " ".join(f"--file {one}" for one in paths[:_FILES_SHOWN_MAX])
        say.labelled(
            "note",
            f"{submission.source} uses {first_of(paths, _FILES_SHOWN_MAX)}, which {verb} not sent: add `{options}`",
        )
    if submission.taken_name:
        why = (
            f"the run `{submission.taken_name}` never started, because it is unschedulable, and keeps its name"
            if submission.is_taken_by_unschedulable
            else f"there is or was a run `{submission.taken_name}`"
        )
        say.labelled(
            "note", f"{why}, so this one is {submission.key.name}; `-n NAME` chooses another name"
        )
    for left in bundle.left_out:
        say.line(f"left out {left}: it is outside the working copy, or not a file", "warn")
    for key in submission.expired:
        say.line(
            f"{key} was submitted over two weeks ago and is removed; its result is kept", "dim"
        )
    commit = ""
    if bundle.commit:
        dirty = "+dirty" if bundle.commit.endswith("+dirty") else ""
        commit = f", {bundle.commit[:12]}{dirty}"
    sent = f"{counted(bundle.files, 'file')} of {bundle.root}{commit}"
    if bundle.only:
        sent = (
            f"only {first_of(bundle.only, _FILES_SHOWN_MAX)} {'is' if len(bundle.only) == 1 else 'are'} sent (not in"
            " a git repository; add `--file` or `files:` for more)"
        )
    say.line(f"{submission.key.name}: {sent}", "dim")
    if submission.from_shell:
        names = ", ".join(submission.from_shell)
        say.line(f"from this shell, in `env:` of {submission.file}: {names}", "dim")
    say.flush()


def _in_one_line(note: Finding) -> str:
    place = note.place
    where = f"{place.file}:{place.line}" if place.line else place.file
    return " ".join(one for one in (f"{where}: {note.detail}", note.advice) if one)


def plan_submission(workspace: Workspace, submission: Submission) -> Plan:
    """
    Plan just this run, and refuse what would need a review.

    Raises:
        Refused: Something holds it, or it needs more than itself.
    """
    from fleetform.cli.apply_flow import plan_scoped
    from fleetform.cli.earlier_apply import plan_after_earlier
    from fleetform.model.plan import Scope

    scope = Scope(targets=tuple(str(key) for key in (submission.key, *submission.expired)))
    plan = plan_after_earlier(
        workspace,
        lambda: plan_scoped(workspace, scope, keep_going=True, quiet=True),
        yes=True,
    )
    others = [change.key for change in plan.changes if change.key.kind != "run"]
    if others:
        raise Refused(
            f"it needs {', '.join(map(str, others))}, which is not applied as declared yet",
            advice=f"run `fleetform apply{directory_words(workspace)}` first: `submit` changes only runs",
        )
    mine = [
        one
        for one in plan.held
        if (one.change.parent or one.change.key.name) == submission.key.name
    ]
    if mine:
        from fleetform.views.reasons import HELD_BY, blocked_text

        raise Refused(
            f"{submission.key.name} is blocked: {blocked_text(HELD_BY[mine[0].by], mine[0].detail)}",
            advice=mine[0].cure,
            code=Exit.HELD,
        )
    return plan


def _carry_out(
    workspace: Workspace,
    plan: Plan,
    submission: Submission,
    interrupts: Interrupts,
    *,
    detach: bool,
    as_json: bool,
) -> int:
    """Apply, and meanwhile print what the run prints; returns the exit code."""
    from fleetform.app.apply import apply_plan
    from fleetform.cli.background import leave, leave_quietly, say_left

    name = submission.key.name
    # Elements of a sweep speak over each other: there each line says whose it is.
    speaks_alone = submission.elements == 1 and not as_json
    end_last = EndLast(error_screen())
    follower = RunOutput(workspace, name, end_last)
    shown_on = error_screen() if as_json else screen()
    progress = end_last if speaks_alone else PlainProgress(shown_on, show_output=not as_json)
    try:
        if speaks_alone and not detach:
            follower.start()
        result = interrupts.run(
            apply_plan(workspace, plan, who=who_asks(), detach=detach, progress=progress)
        )
    except KeyboardInterrupt:
        left = interrupts.shield(lambda: leave_quietly(workspace))
        # The terminal may be closed: the line is lost then.
        with contextlib.suppress(OSError):
            follower.stop()
            error_screen().line(f"\n{name} continues", "note")
            say_left(workspace, left)
            if as_json:
                _print_json(workspace, plan, submission, "interrupted", Exit.INTERRUPTED)
        return Exit.INTERRUPTED
    except Exception:
        interrupts.shield(lambda: leave_quietly(workspace))
        raise
    # Who does not wait has to know that it goes on; who has waited knows how it ended.
    left = interrupts.shield(lambda: (leave if detach else leave_quietly)(workspace))
    follower.finish()
    if speaks_alone:
        end_last.say_end()
    _say_next(workspace, name, result.exit_code, detach=detach)
    for reason in result.blocked:
        error_screen().labelled("warning", reason)
    say_left(workspace, left)
    if as_json:
        ended = "done" if result.exit_code == Exit.OK else "failed"
        outcome = "submitted" if detach or result.state == "handed-over" else ended
        _print_json(workspace, plan, submission, outcome, result.exit_code)
    return result.exit_code


def _print_json(
    workspace: Workspace, plan: Plan, submission: Submission, outcome: str, code: int
) -> None:
    """Print the submission with its runs as the ledger has them by now."""
    from fleetform.app.clock import SystemClock
    from fleetform.views.runs import SubmittedRow, in_order, run_rows

    mine = submission.key.name
    names = [
        change.key.name
        for change in plan.changes
        if change.key.kind == "run" and mine in {change.key.name, change.parent}
    ]

    def read(reader: Reader) -> tuple[RunRow, ...]:
        instances = reader.read_book(only=()).instances
        histories = in_order(reader.read_runs(names))
        return run_rows(histories, instances=instances, now_ms=SystemClock().now_ms())

    rows = workspace.read(read, ())
    bundle = submission.bundle
    screen().json(
        SubmittedRow(mine, outcome, int(code), submission.file, bundle.files, bundle.commit, rows)
    )


def _say_next(workspace: Workspace, name: str, code: int, *, detach: bool) -> None:
    from fleetform.app.workspace import is_created_here

    say, where = error_screen(), directory_words(workspace, finds_default=True)
    if detach:
        say.line(f"{name} is submitted", "good")
        say.labelled("help", f"`fleetform logs{where} {name} -f` follows it")
    elif code == Exit.OK:
        # Nothing is reviewed in the default environment, so there is nowhere to keep it.
        if not is_created_here(workspace.root):
            root = directory_words(workspace)
            say.labelled("help", f"`fleetform keep{root} {name}` moves it into the configuration")
    else:
        say.labelled("help", f"`fleetform why{where} {quote(name)}` says how it ended")

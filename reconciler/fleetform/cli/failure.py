"""
From an exception to what a person reads: one line of what, one of what to do, an exit code.

    Refused             raised here in `cli`: the command will not do this, and says what would
    app's Problem    the same from below, with its own exit code
    StalePlan …         states of the ledger: it has changed, the disk is full
    click's errors      the command line could not be understood
    OSError             the machine said no: a file, a disk, a permission

Anything else is a bug in fleetform: its traceback goes to a file and the person gets one line.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from dataclasses import dataclass

import click

from fleetform.cli.exit import Exit

REPORTS_MAX = 20
"""Crash reports that are kept: of a fault that comes again, the newest say as much as all."""

_REPORT_PREFIX = "fleetform-crash-"
_REPORT_SUFFIX = ".txt"


class Refused(Exception):
    """This command will not do that. `advice` is the next thing to type or to change."""

    def __init__(self, message: str, *, advice: str = "", code: Exit = Exit.ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.code = code


def bad_address(problem: str, *, advice: str) -> Refused:
    """Refuse what is no address; `advice` is for a problem that does not say what to write."""
    from fleetform.model.selection import split_correction

    what, correction = split_correction(problem, advice)
    return Refused(what, advice=correction)


@dataclass(frozen=True, slots=True)
class Failure:
    """What is printed as `error:` and `help:`, and the code to leave with."""

    message: str
    advice: str
    code: int


def explain(error: BaseException) -> Failure | None:
    """Put an expected exception into words; None for one that is a bug."""
    if isinstance(error, Refused):
        return Failure(error.message, error.advice, error.code)
    if isinstance(error, click.ClickException):
        return _explain_usage(error)
    return (
        _explain_problem(error)
        or _explain_ledger(error)
        or (_explain_machine(error) if isinstance(error, OSError) else None)
    )


def report_bug(error: BaseException) -> Failure:
    """
    Keep the traceback of an unexpected exception.

    With FLEETFORM_DEBUG set the traceback is shown as well.
    """
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    if os.environ.get("FLEETFORM_DEBUG"):
        sys.stderr.write(text)
    summary = f"unexpected {type(error).__name__}: {error}".rstrip(": ")
    try:
        descriptor, path = tempfile.mkstemp(prefix=_REPORT_PREFIX, suffix=_REPORT_SUFFIX)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{' '.join(sys.argv)}\nPython {sys.version}\n\n{text}")
        # Another process may remove the same ones.
        with contextlib.suppress(OSError):
            _remove_old_reports()
    except OSError:
        return Failure(
            summary,
            "this is a bug in fleetform; run it again with FLEETFORM_DEBUG=1 and report what it prints",
            Exit.ERROR,
        )
    return Failure(
        summary, f"this is a bug in fleetform; report it with the traceback in {path}", Exit.ERROR
    )


def _remove_old_reports() -> None:
    """Keep the newest reports of this user: a command that fails each minute fills no disk."""
    import tempfile
    from pathlib import Path

    folder = Path(tempfile.gettempdir())
    found = [(path.lstat(), path) for path in folder.glob(f"{_REPORT_PREFIX}*{_REPORT_SUFFIX}")]
    reports = sorted(
        (status.st_mtime_ns, path)
        for status, path in found
        # The folder is everyone's, and so may the files in it be.
        if status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode)
    )
    for _, path in reports[:-REPORTS_MAX]:
        path.unlink()


def _explain_usage(error: click.ClickException) -> Failure:
    advice = ""
    if isinstance(error, click.UsageError) and (ctx := error.ctx) is not None:
        advice = f"see `{ctx.command_path} --help`"
        if isinstance(error, click.NoSuchOption):
            error = _without_hidden(error, ctx)
        examples = getattr(ctx.command, "examples", ())
        if isinstance(error, click.MissingParameter) and examples:
            advice = f"for example `{examples[0][0]}`; {advice}"
    return Failure(error.format_message(), advice, Exit.ERROR)


def _without_hidden(error: click.NoSuchOption, ctx: click.Context) -> click.NoSuchOption:
    """Suggest only options that the help of the command lists."""
    hidden = {
        name
        for one in ctx.command.params
        if isinstance(one, click.Option) and one.hidden
        for name in one.opts
    }
    shown = [one for one in error.possibilities or () if one not in hidden]
    return click.NoSuchOption(error.option_name, possibilities=shown, ctx=ctx)


def _explain_problem(error: BaseException) -> Failure | None:
    # The module is loaded if such an exception exists, and must not be loaded otherwise:
    # `fleetform version` answers before it could be imported.
    problems = sys.modules.get("fleetform.app.problems")
    if problems is None or not isinstance(error, problems.Problem):
        return None
    return Failure(error.message, error.advice, error.exit_code)


def _explain_ledger(error: BaseException) -> Failure | None:
    refusals = sys.modules.get("fleetform.model.refusals")
    if refusals is None:
        return None
    if isinstance(error, refusals.StalePlan):
        changed = "".join(f"\n  {failure}" for failure in error.failures)
        return Failure(
            f"the plan is stale{':' if changed else ''}{changed}",
            "nothing was changed; plan again, and apply the new plan",
            Exit.STALE,
        )
    if isinstance(error, refusals.PolicyRefused):
        return Failure(str(error), error.advice, Exit.POLICY)
    if isinstance(error, refusals.FenceLost):
        why = f": {error}" if str(error) else ""
        return Failure(
            f"this fleetform no longer manages the environment{why}",
            "it has stopped; `fleetform lock list` shows who does, `fleetform ps` shows the runs",
            Exit.LOCKED,
        )
    if isinstance(error, refusals.LedgerUnavailable) and isinstance(error, refusals.LedgerUnusable):
        return Failure(str(error), error.advice, Exit.ERROR)
    if isinstance(error, refusals.LedgerUnavailable):
        return Failure(
            f"the ledger cannot be written now: {error}",
            "nothing was lost; check the disk, then run the same command again",
            Exit.ERROR,
        )
    if isinstance(error, refusals.LedgerUnusable):
        return Failure(str(error), error.advice, Exit.ERROR)
    return None


def _explain_machine(error: OSError) -> Failure:
    what = error.strerror or str(error) or type(error).__name__
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    return Failure(f"{where}{what[:1].lower()}{what[1:]}", "", Exit.ERROR)

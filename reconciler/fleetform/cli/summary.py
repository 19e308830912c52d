"""
How an apply ended: the runs, the last lines of those that went wrong, and what to type next.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.cli.background import say_left
from fleetform.cli.exit import Exit
from fleetform.cli.failure import explain
from fleetform.cli.logs import last_lines
from fleetform.cli.progress.board import printable
from fleetform.cli.screen import Screen, error_screen, screen
from fleetform.cli.tree import not_driven
from fleetform.model.figures import counted, first_of
from fleetform.model.run import FINAL, AttemptState, RunState
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.spec.names import natural_order
from fleetform.views.controllers import ControllerKind

if TYPE_CHECKING:
    from fleetform.app.apply import ApplyResult
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.views.controllers import ControllerRow

# What fits on a screen with the rest of the summary; bad ones come first.
_ROWS_MAX = 20
_TROUBLES_MAX = 3
_LINES_OF_OUTPUT = 5
_NAMES_MAX = 3
_NEVER_STARTED = frozenset({RunState.UNSCHEDULABLE, RunState.ABORTED})
_FAILED = frozenset({RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED})


_NOT_BEGUN = frozenset({AttemptState.WAITING, AttemptState.FINISHED})

_ACCOUNT = "do what the reason says; a run starts within a minute after its account was created"

_APPLIED = "Applied; `fleetform ps` shows the runs."
_NOTHING_RAN = "Applied; nothing had to run."


def show_summary(
    workspace: Workspace,
    result: ApplyResult,
    *,
    began_ms: int,
    finished: str,
    printed: frozenset[str] = frozenset(),
    failures: frozenset[str] = frozenset(),
    left_blocked: int = 0,
) -> None:
    """
    Show the end of an apply that came to one.

    Args:
        workspace: Where output and names of hosts are read.
        result: What came of it.
        began_ms: When it began. A run that had ended well before is not what was done.
        printed: Runs whose output is on the screen already, so that its end is not shown again.
        failures: Lines about failed steps that are on the screen already.
        finished: Said where nothing else is to be said; empty: that it was applied.
        left_blocked: Changes that are blocked, of an apply that made none.
    """
    from fleetform.app.controllers import find_controller

    out = screen()
    runs = tuple(each for each in result.runs if not _was_done(each, began_ms))
    if result.runs and not runs:
        finished = _NOTHING_RAN
    elif not finished:
        finished = _APPLIED if runs else "Applied."
    result = replace(result, runs=runs)
    if runs:
        out.line()
        _show_runs(out, workspace, runs)
    for message in result.messages:
        out.line(message)
    for failure in result.failed_steps:
        if failure in failures:
            continue
        error_screen().labelled("error", failure)
    for reason in result.blocked[:_TROUBLES_MAX]:
        error_screen().labelled("warning", reason)
    if result.blocked:
        error_screen().labelled("help", _ACCOUNT)
    bad = [each for each in result.runs if _has_failed(each)]
    for each in [one for one in bad if one.run.name not in printed][:_TROUBLES_MAX]:
        _show_trouble(out, workspace, each)
    _show_next(out, result, bad, finished, left_blocked)
    # A detached apply leaves, and runs neither start nor end by themselves.
    if any(each.run.state not in FINAL for each in runs) and find_controller(workspace) is None:
        error_screen().labelled("help", not_driven(workspace))


def show_interrupted(workspace: Workspace, left: ControllerRow | None) -> None:
    """
    Say what Ctrl-C has done, and what it has not.

    Args:
        workspace: Whose runs go on.
        left: The controller that drives them from now on, if one does.
    """
    notices = error_screen()
    notices.line("interrupted: nothing is lost, and running jobs continue on their hosts", "warn")
    _say_rest(notices, workspace, left)
    if left is None:
        _say_ending(notices, workspace)
        notices.labelled(
            "help",
            "`fleetform apply` drives the runs again, `fleetform stop RUN --apply` ends one",
        )
        return
    if left.kind is ControllerKind.BACKGROUND:
        say_left(workspace, left)
    else:
        # One that has just begun may not have said yet who it is.
        who = f"`{left.command}` (pid {left.pid})" if left.command else "another command"
        notices.labelled("help", f"{who} drives the runs; see `fleetform ps`")
    notices.labelled("help", "`fleetform stop RUN --apply` ends a run")


def _say_rest(notices: Screen, workspace: Workspace, left: ControllerRow | None) -> None:
    """Say what of an accepted plan is still to be done, and who does it: Ctrl-C does not withdraw it."""
    names = workspace.read(_unchanged, [])
    if not names:
        return
    who = "the next `fleetform apply`"
    if left is not None:
        is_background = left.kind is ControllerKind.BACKGROUND
        who = "the background controller" if is_background else "the command that drives the runs"
    verb = "is" if len(names) == 1 else "are"
    notices.line(
        f"{first_of(names, _NAMES_MAX)} {verb} not changed yet: {who} applies the rest of the plan",
        "warn",
    )


def _unchanged(reader: Reader) -> list[str]:
    """Name the resources of accepted plans that have a step to come."""
    found = {
        str(step.resource)
        for one in reader.read_applies()
        if one.state == "running"
        for step in reader.read_operations(one.uid)
        if step.state in {"planned", "intended"}
    }
    return sorted(found, key=natural_order)


def _say_ending(notices: Screen, workspace: Workspace) -> None:
    """Name the runs whose end was requested and that may still run: no controller is there to end them."""
    book = workspace.read(lambda reader: reader.read_book(), None)
    if book is None:
        return
    begun = (book.runs[uid] for uid, one in book.attempts.items() if one.state not in _NOT_BEGUN)
    names = sorted({run.name for run in begun if run.stop_requested}, key=natural_order)
    if names:
        verb = "is" if len(names) == 1 else "are"
        notices.line(
            f"{first_of(names, 1)} {verb} asked to stop and may continue until a controller drives the runs",
            "warn",
        )


def _was_done(history: RunHistory, began_ms: int) -> bool:
    run = history.run
    return (
        run.state is RunState.DONE
        and run.finished_at_ms is not None
        and run.finished_at_ms < began_ms
    )


def _is_gone(history: RunHistory) -> bool:
    """Tell of a run that was removed that it is over: however it ended, it was to."""
    return history.archived and history.run.state in FINAL


def _has_failed(history: RunHistory) -> bool:
    """Tell whether it failed, or only a person can say how it ended; silence alone is no end."""
    if history.run.cause == NO_EVIDENCE:
        return not _is_gone(history)
    return history.run.state in _FAILED and not _is_gone(history)


def _may_resume(history: RunHistory) -> bool:
    """Tell of a run that was stopped whether it is there to be run once more."""
    run = history.run
    is_meant = run.template.wanted == "stopped"
    return run.state is RunState.STOPPED and not history.archived and not is_meant


def _show_runs(out: Screen, workspace: Workspace, runs: tuple[RunHistory, ...]) -> None:
    from fleetform.app.clock import SystemClock
    from fleetform.views.run_list import list_runs
    from fleetform.views.runs import in_order, run_rows, runs_table

    now_ms = SystemClock().now_ms()
    ordered = sorted(in_order(runs), key=lambda each: each.run.state is RunState.DONE)
    rows = run_rows(ordered, instances=_instances(workspace), now_ms=now_ms)
    is_long = len(rows) > _ROWS_MAX
    if is_long:
        folded = list_runs(rows).rows
        rows = tuple(row for row in folded if row.state != RunState.DONE.value)[:_ROWS_MAX]
    if rows:
        out.table(runs_table(rows, now_ms=now_ms))
    if is_long:
        states = Counter(each.run.state.value for each in runs)
        counts = ", ".join(f"{count} {state}" for state, count in states.most_common())
        out.line(f"{counted(len(runs), 'run')}: {counts}")


def _instances(workspace: Workspace) -> tuple[Instance, ...]:
    """Read the hosts, so that the table has their names."""
    return workspace.read(lambda reader: reader.read_book(only=()).instances, ())


def _show_trouble(out: Screen, workspace: Workspace, history: RunHistory) -> None:
    """Show the last lines of a run that went wrong: most often they say why."""
    if not history.attempts:
        return
    try:
        lines = last_lines(workspace.logs(), history.attempts[-1], _LINES_OF_OUTPUT)
    except OSError as error:
        failure = explain(error)
        lines = [f"its output cannot be read: {failure.message if failure else error}"]
    if lines:
        out.line()
        out.line(f"{history.run.name} printed last:", "bold")
        for line in lines:
            out.line(f"  {printable(line.expandtabs())}", "dim")


def say_nothing_applied(out: Screen, blocked: int) -> None:
    """End an apply that made no change because all of them are blocked."""
    verb = "is" if blocked == 1 else "are"
    out.line(f"Nothing was applied; {counted(blocked, 'change')} {verb} blocked.", "warn")


def _show_next(
    out: Screen,
    result: ApplyResult,
    bad: list[RunHistory],
    finished: str,
    left_blocked: int,
) -> None:
    out.line()
    states = [each.run.state for each in result.runs]
    if result.state == "handed-over":
        out.line(
            "The plan is accepted, and is still being applied; `fleetform history` shows the"
            " result."
        )
    elif result.failed_steps:
        advice = "do what the errors say, then run the command again"
        out.line(f"Some steps failed. The other steps stay done: {advice}.", "bad")
    elif bad:
        name = quoted(bad[0].run.name)
        tried = bool(bad[0].attempts) and bad[0].run.state not in _NEVER_STARTED
        see = f"`fleetform {'logs' if tried else 'why'} {name}`"
        out.line(f"{_ends(bad)}; see {see}.", "bad")
    elif stopped := sum(map(_may_resume, result.runs)):
        out.line(
            f"{counted(stopped, 'run')} stopped before the end; `fleetform rerun RUN` runs one again.",
            "warn",
        )
    elif silent := [each.run.name for each in result.runs if each.run.state is RunState.UNKNOWN]:
        verb = "waits" if len(silent) == 1 else "wait"
        why = f"see `fleetform why {quoted(silent[0])}`"
        out.line(f"{counted(len(silent), 'run')} {verb} for an unreachable host; {why}.", "warn")
    elif left_blocked:
        say_nothing_applied(out, left_blocked)
    elif result.blocked:
        verb = "is" if len(result.blocked) == 1 else "are"
        out.line(f"Applied; {counted(len(result.blocked), 'run')} {verb} blocked.", "warn")
    elif result.messages and result.exit_code == Exit.HELD:
        out.line("Applied; not all runs were waited for.", "warn")
    elif result.exit_code == Exit.HELD:
        out.line("Applied, except for what is blocked: the plan says why.", "warn")
    elif states and set(states) == {RunState.DONE}:
        out.line(f"Done: {counted(len(states), 'run')} succeeded.", "good")
    elif ending := [each.run.name for each in result.runs if each.run.state is RunState.FINISHING]:
        who = f"{ending[0]} is" if len(ending) == 1 else f"{len(ending)} runs are"
        out.line(f"Applied; {who} still finishing; `fleetform ps` shows the state.", "good")
    else:
        out.line(finished, "good")


def _ends(bad: list[RunHistory]) -> str:
    """Count how runs ended, those that failed first: `1 run failed, 2 unschedulable`."""
    states = Counter(each.run.state for each in bad)
    first, *others = sorted(states, key=lambda state: (state is not RunState.FAILED, state))
    verb = "" if first is RunState.FAILED else " is" if states[first] == 1 else " are"
    rest = "".join(f", {states[state]} {state.value}" for state in others)
    return f"{counted(states[first], 'run')}{verb} {first.value}{rest}"


def quoted(name: str) -> str:
    """Quote an element's name: shells take its brackets for a pattern."""
    return f"'{name}'" if "[" in name else name

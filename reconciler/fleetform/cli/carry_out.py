"""
Carrying out a plan at a terminal: ask, watch, and say how it ended and what to do next.

`apply` and `destroy` differ in the plan they make and in what they ask; the rest is here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.progress.json_lines import JsonProgress
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.progress.several import SeveralProgress
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.who import who_asks

if TYPE_CHECKING:
    from fleetform.model.plan import Change, Plan
    from fleetform.model.ports import Progress
    from fleetform.wiring.applying import ApplyResult
    from fleetform.wiring.workspace import Workspace


_FASTER_MAX = 5
"""How often others may be faster before it is told instead of tried again."""


class Watching(NamedTuple):
    """
    How an apply is watched.

    `json_into` is a file for JSON lines, or None. `finished` is said at the end where nothing
    else is to be said.
    """

    detach: bool = False
    show_output: bool = False
    json_into: str | None = None
    finished: str = "Applied; `fleetform ps` shows the runs."


def ask(question: str, *, expected: str, yes: bool, how: str) -> None:
    """
    Ask a person to type `expected`.

    Args:
        question: The whole prompt without the answer's space.
        expected: What must be typed; one letter is enough of `yes`.
        yes: Permission was given on the command line: nobody is asked.
        how: What to pass where nobody can be asked.

    Raises:
        Refused: They typed something else, or there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(
            "nobody can be asked: standard input is not a terminal",
            advice=f"look at the plan above, then pass {how}",
        )
    prompt = error_screen()
    prompt.stream.write(f"{prompt.toned(question, 'bold')} ")
    prompt.flush()
    answer = sys.stdin.readline().strip()
    if answer == expected or (expected == "yes" and answer.lower() in {"y", "yes"}):
        return
    raise Refused("not confirmed: nothing was changed")


def settle_earlier(workspace: Workspace) -> bool:
    """
    See an apply through that was entered before, so that anything new is planned after it.

    Returns False at once where there is none.
    """
    from fleetform.wiring.applying import settle, unfinished

    if not unfinished(workspace):
        return False
    import asyncio

    asyncio.run(settle(workspace, who=who_asks(), progress=PlainProgress(error_screen())))
    return True


def carry_out(
    workspace: Workspace,
    plan: Plan,
    watching: Watching,
    *,
    again: Callable[[], Plan] | None = None,
) -> int:
    """
    Apply `plan` and follow its runs; returns the exit code.

    Where somebody else was faster, it is planned `again`: what is left of what was approved, and
    nothing beside it, goes on without another question. None: a plan that moved is refused.

    Raises:
        StalePlan: Something that the plan touches is not as it was; nothing was changed.
    """
    from fleetform.model.refusals import StalePlan

    for _ in range(_FASTER_MAX):
        try:
            return _carry_out(workspace, plan, watching)
        except StalePlan:
            if again is None:
                raise
            settle_earlier(workspace)
            newer = again()
            if not is_within(newer, plan):
                raise
            plan = newer
    return _carry_out(workspace, plan, watching)


def record_nothing(path: str | None, plan: Plan, code: int) -> None:
    """Write into the file of an apply that there was nothing to carry out."""
    from fleetform.wiring.applying import ApplyResult

    with contextlib.ExitStack() as stack:
        record = _record(stack, path)
        if record is not None:
            record.began(plan)
            record.result(ApplyResult("done", code), code)


def is_within(newer: Plan, approved: Plan) -> bool:
    """Tell whether all that a plan does was approved with an earlier one, to the last value."""
    known = {(change.key, change.action): change for change in approved.changes}
    return all(
        _does_the_same(change, known.get((change.key, change.action))) for change in newer.changes
    )


def _does_the_same(change: Change, approved: Change | None) -> bool:
    if approved is None or change.destructive > approved.destructive:
        return False
    done = [(step.verb, step.resource, step.arguments) for step in change.steps]
    return done == [(step.verb, step.resource, step.arguments) for step in approved.steps]


def _carry_out(workspace: Workspace, plan: Plan, watching: Watching) -> int:
    import asyncio

    from fleetform.cli.summary import show_interrupted, show_summary
    from fleetform.wiring.applying import apply_plan
    from fleetform.wiring.clock import SystemClock

    began_ms = SystemClock().now_ms()
    with contextlib.ExitStack() as stack:
        record = _record(stack, watching.json_into)
        progress = stack.enter_context(_watch(watching))
        if record is not None:
            record.began(plan)
            progress = SeveralProgress(progress, record)
        try:
            result: ApplyResult | None = asyncio.run(
                apply_plan(
                    workspace, plan, who=who_asks(), detach=watching.detach, progress=progress
                )
            )
        except KeyboardInterrupt:
            result = None
        except Exception as problem:
            if record is not None:
                record.refused(problem)
            raise
        code = _code(result)
        if record is not None:
            record.result(result, code)
    if result is None or result.state == "interrupted":
        show_interrupted(workspace)
    else:
        show_summary(workspace, result, began_ms=began_ms, finished=watching.finished)
    return code


def _code(result: ApplyResult | None) -> int:
    if result is None or result.state == "interrupted":
        return Exit.INTERRUPTED
    return result.exit_code


def _record(stack: contextlib.ExitStack, path: str | None) -> JsonProgress | None:
    if path is None:
        return None
    return JsonProgress(stack.enter_context(Path(path).open("a", encoding="utf-8")))


@contextlib.contextmanager
def _watch(watching: Watching) -> Iterator[Progress]:
    """Choose between the live screen and plain lines."""
    out = screen()
    # What jobs print scrolls; a table that stays in place would fight with it for the screen.
    if not out.interactive or watching.show_output or watching.detach:
        yield PlainProgress(out, show_output=watching.show_output)
        return
    from rich.console import Console

    from fleetform.cli.progress.live import LiveProgress

    with LiveProgress(Console(file=out.stream, no_color=not out.colour)) as live:
        yield live

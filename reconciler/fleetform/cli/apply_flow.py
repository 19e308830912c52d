"""
Carrying out a plan at a terminal: ask, watch, and say how it ended and what to do next.

`apply` and `destroy` differ in the plan they make and in what they ask; the rest is here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from fleetform.cli.arguments import who_asks
from fleetform.cli.background import leave, leave_quietly, say_left
from fleetform.cli.earlier_apply import plan_after_earlier
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Failure, Refused, explain
from fleetform.cli.interrupts import Interrupts
from fleetform.cli.plan import show_plan
from fleetform.cli.progress.json_lines import JsonProgress
from fleetform.cli.progress.plain import PlainProgress, SeveralProgress
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import load, print_plan_warnings
from fleetform.model.figures import counted, first_of
from fleetform.model.refusals import StalePlan
from fleetform.model.run_state import FINAL
from fleetform.plan.approval import following, is_within, runs_ended_by
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.app.apply import ApplyResult
    from fleetform.app.workspace import Workspace
    from fleetform.cli.run_output import RunOutput
    from fleetform.model.plan import Plan, Scope
    from fleetform.model.ports import Progress
    from fleetform.spec.desired import ResourceKey
    from fleetform.views.controllers import ControllerRow

_FASTER_MAX = 5
"""How often other applies may be faster before that is reported instead of tried again."""

_CAME_TO_ITS_END = frozenset({Exit.OK, Exit.HELD, Exit.RUN_FAILED})
"""Any other outcome ends the command: a step failed, or the user interrupted it."""


class Watching(NamedTuple):
    """
    How an apply is watched.

    `json_into` is a file for JSON lines, or None. `finished` is said at the end where nothing
    else is to be said; empty: what the command that applies says.
    """

    detach: bool = False
    show_output: bool = False
    json_into: str | None = None
    finished: str = ""


class _End(NamedTuple):
    """How one apply ended; without a result it was interrupted."""

    code: int
    result: ApplyResult | None
    began_ms: int
    printed: frozenset[str] = frozenset()
    """Runs whose whole output is on the screen already."""
    failures: frozenset[str] = frozenset()
    """Lines about failed steps that are on the screen already."""
    changes: int = 0
    """How many changes the plans had that it entered."""
    blocked: int = 0
    """How many changes of the newest plan are blocked."""


@dataclass
class _Apply:
    """
    One apply, which may take several plans one after the other.

    `plan` is the next to carry out. `entered` names the runs of an earlier plan of it, which another
    process may have entered.
    """

    workspace: Workspace
    plan: Plan
    watching: Watching
    record: JsonProgress | None
    interrupts: Interrupts
    _: KW_ONLY
    again: Callable[[], Plan] | None
    unasked: bool

    def __post_init__(self) -> None:
        from fleetform.plan.wait_targets import ending

        self.entered: tuple[str, ...] = ()
        self._approved = self.plan
        # What others leave of it is planned again; what a run had blocked has a plan of its own.
        self._begun = self.plan
        self._faster = 0
        self._earlier: _End | None = None
        waits = self.again is not None and not self.watching.detach
        self._waiting = set(ending(self.plan).values()) if waits else set()

    def plan_again(self, stale: StalePlan) -> None:
        """
        Plan the rest where another apply was faster.

        Raises:
            StalePlan: It was planned often enough, or more is left than was approved.
        """
        from fleetform.plan.wait_targets import waited_for

        if self.again is None or self._faster == _FASTER_MAX:
            raise stale
        self._faster += 1
        before, self.plan = self.plan, plan_after_earlier(self.workspace, self.again, yes=True)
        if not is_within(self.plan, self._begun, unasked=self.unasked):
            raise stale
        _say_begun(sorted(_runs_ended(self.plan) - _runs_ended(before), key=natural_order))
        self.entered = (*self.entered, *waited_for(self._begun))

    def end_after(self, end: _End) -> _End | None:
        """Return the end of the whole; None where a run that blocked changes has ended: they follow."""
        from fleetform.plan.wait_targets import ending, waited_for

        if self._earlier is not None:
            end = _with_earlier(end, self._earlier, self._begun)
        if self.again is None or not self._waiting or end.code not in _CAME_TO_ITS_END:
            return end
        newer = self.again()
        still = self._waiting & set(ending(newer).values())
        # Whether a run on a silent host is over is unknown: it was waited for long enough.
        if still == self._waiting:
            return end
        if not is_within(newer, self._approved):
            error_screen().labelled("help", "a different change is blocked now: plan again")
            return end
        self.entered = tuple(key.name for key in self._waiting if key.kind == "run")
        if newer.is_empty and not waited_for(newer, self.entered):
            # Another process has carried it out, and it is over.
            return _with_earlier(end, None, newer)
        _say_released(sorted(self._waiting - still, key=lambda key: natural_order(str(key))))
        self.plan = self._begun = newer
        self._earlier, self._waiting, self._faster = end, still, 0
        return None


def ask(
    question: str,
    *,
    expected: str,
    yes: bool,
    how: str,
    look: str = "look at the plan above, then",
) -> None:
    """
    Ask a person to type `expected`.

    Args:
        question: The whole prompt without the answer's space.
        expected: What must be typed; one letter is enough of `yes`.
        yes: Permission was given on the command line: no question is asked.
        how: What to pass where no question can be asked.
        look: What to do before that.

    Raises:
        Refused: They typed something else, or there is nobody to ask.
    """
    if yes:
        return
    require_terminal(yes=yes, how=how, look=look)
    prompt = error_screen()
    prompt.stream.write(f"{prompt.toned(question, 'bold')} ")
    prompt.flush()
    answer = sys.stdin.readline().strip()
    if answer == expected or (expected == "yes" and answer.lower() in {"y", "yes"}):
        return
    raise Refused("not confirmed: nothing was changed")


def require_terminal(*, yes: bool, how: str, look: str) -> None:
    """
    Refuse where a question will come and cannot be asked; `how` and `look` as in `ask`.

    A command that writes before it asks calls this first: else its edit stays behind, not applied.
    """
    if not yes and not sys.stdin.isatty():
        raise Refused(
            "cannot ask for confirmation: standard input is not a terminal",
            advice=f"{look} pass {how}",
        )


def carry_out(
    workspace: Workspace,
    plan: Plan,
    watching: Watching,
    *,
    again: Callable[[], Plan] | None = None,
    unasked: bool = False,
) -> int:
    """
    Apply `plan` and follow its runs; returns the exit code.

    Where another process was faster, it is planned `again`: what is left of what was approved, and
    nothing else, goes on without another question; where no question was asked (`unasked`), work that
    began on a fleet that goes meanwhile is reported, and ends by the same permission. So it is where a change was held by a run
    that was on its way to its end: who waits has it carried out once the run is over. None: a
    plan that moved is refused, and what is held stays so.

    Raises:
        StalePlan: Something that the plan touches is not as it was; nothing was changed.
        Problem: What goes on could not be left to a background controller.
    """
    with contextlib.ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        record = _record(stack, watching.json_into)
        apply = _Apply(workspace, plan, watching, record, interrupts, again=again, unasked=unasked)
        try:
            over: _End | None = None
            while over is None:
                try:
                    ended = _carry_out(apply, apply.plan)
                except StalePlan as stale:
                    apply.plan_again(stale)
                else:
                    over = apply.end_after(ended)
            end = over
        except KeyboardInterrupt:
            # While it was planned again: an apply that goes on takes it for itself.
            end = _End(Exit.INTERRUPTED, None, 0)
        except Exception as problem:
            # Also where nothing can be printed any more: the terminal or the pipe is closed.
            interrupts.shield(lambda: leave_quietly(workspace))
            _record_refusal(record, problem)
            raise
        # Who does not wait has to know that it goes on; who has waited knows how it ended.
        leaves = leave if watching.detach and end.result is not None else leave_quietly
        try:
            left = interrupts.shield(lambda: leaves(workspace))
        except Exception as problem:
            _record_refusal(record, problem)
            raise
        if record is not None:
            record.result(end.result, end.code)
        _show_end(workspace, end, watching, left)
    return end.code


def _record_refusal(record: JsonProgress | None, problem: Exception) -> None:
    if record is not None:
        failure = explain(problem) or Failure(str(problem), "", Exit.ERROR)
        record.refused(failure.message, failure.code)


def confirm(plan: Plan, *, yes: bool, follows: int) -> None:
    """
    Ask whether to apply `plan`, which `follows` so many changes once stopping work has ended.

    What destroys asks for the environment's name: a `y` is typed faster than a plan is read.

    Raises:
        Refused: They typed something else, or there is nobody to ask.
    """
    if plan.is_empty and not follows:
        return
    screen().line()
    destructive = sum(change.destructive for change in plan.changes)
    expected = plan.environment_name if destructive else "yes"
    if destructive:
        question = (
            f"{counted(destructive, 'change')} will delete something or end running work. "
            f"Type the environment's name, {plan.environment_name}, to continue:"
        )
    elif plan.is_empty:
        changes = counted(following(plan), "change")
        question = f"Apply {changes} once the stopping work has ended? [y/N]"
    else:
        question = f"Apply {counted(len(plan.changes), 'change')}? [y/N]"
    ask(question, expected=expected, yes=yes, how="-y to apply it")


def _with_earlier(end: _End, earlier: _End | None, plan: Plan) -> _End:
    """Judge an apply by its newest plan and by the runs of all its plans."""
    from fleetform.plan.exit import apply_code

    if end.result is None or end.code not in _CAME_TO_ITS_END:
        return end
    before = () if earlier is None or earlier.result is None else earlier.result.runs
    runs = {one.run.name: one for one in (*before, *end.result.runs)}
    code = apply_code(plan, end.result.failed_steps, tuple(runs.values()))
    return end._replace(
        code=code,
        result=replace(end.result, exit_code=code, runs=tuple(runs.values())),
        changes=end.changes + (0 if earlier is None else earlier.changes),
        blocked=len(plan.held),
    )


def _say_released(keys: list[ResourceKey]) -> None:
    out = screen()
    names = ", ".join(map(str, keys))
    verb = "has" if len(keys) == 1 else "have"
    out.line(f"{names} {verb} ended: the changes that waited for it are applied", "note")
    out.flush()


def _say_begun(runs: list[str]) -> None:
    """Tell of work that ends although the plan on the screen did not name it."""
    if not runs:
        return
    out = screen()
    verb = "has" if len(runs) == 1 else "have"
    out.line(
        f"run/{first_of(runs, 1)} {verb} started meanwhile on hosts that are removed, and will end too",
        "note",
    )
    out.flush()


def _runs_ended(plan: Plan) -> frozenset[str]:
    return frozenset().union(*(runs_ended_by(change) for change in plan.changes))


def say_if_blocked(plan: Plan) -> None:
    """End a command that has no change to make because all of them are blocked."""
    from fleetform.cli.summary import say_nothing_applied

    # While the ledger is recovering, the plan says nothing else.
    if plan.held and not plan.changes and not plan.recovering:
        say_nothing_applied(screen(), len(plan.held))


def record_nothing(path: str | None, plan: Plan, code: int) -> None:
    """Write into the file of an apply that there was nothing to carry out."""
    from fleetform.app.apply import ApplyResult

    with contextlib.ExitStack() as stack:
        record = _record(stack, path)
        if record is not None:
            record.began(plan)
            record.result(ApplyResult("done", code), code)


def _carry_out(apply: _Apply, plan: Plan) -> _End:
    from fleetform.app.apply import apply_plan
    from fleetform.app.clock import SystemClock

    began_ms, detach, entered = SystemClock().now_ms(), apply.watching.detach, apply.entered
    output = _output_of(apply, plan)
    with _watch(apply.watching, output) as shown:
        progress = shown
        if apply.record is not None:
            apply.record.began(plan)
            progress = SeveralProgress(shown, apply.record)
        try:
            result: ApplyResult | None = apply.interrupts.run(
                apply_plan(
                    apply.workspace,
                    plan,
                    who=who_asks(),
                    detach=detach,
                    progress=progress,
                    entered=entered,
                )
            )
        except KeyboardInterrupt:
            result = None
        if output is not None:
            _finish_output(output, result)
    code = Exit.INTERRUPTED if result is None else result.exit_code
    printed = {output.name} if output is not None and output.is_complete else ()
    failures = shown.failures if isinstance(shown, PlainProgress) else ()
    return _End(
        code,
        result,
        began_ms,
        printed=frozenset(printed),
        failures=frozenset(failures),
        changes=len(plan.changes),
        blocked=len(plan.held),
    )


def _output_of(apply: _Apply, plan: Plan) -> RunOutput | None:
    """Choose the run whose output is printed as it comes: the only one, of one job."""
    from fleetform.cli.run_output import single_output

    watching = apply.watching
    if watching.detach or watching.show_output or watching.json_into is not None:
        return None
    return single_output(apply.workspace, plan, apply.entered)


def _finish_output(output: RunOutput, result: ApplyResult | None) -> None:
    """Print the rest of the output, then the line that says how the run ended."""
    if result is None:
        # The terminal may be closed: the rest is lost then.
        with contextlib.suppress(OSError):
            output.stop()
        return
    if any(one.run.name == output.name and one.run.state in FINAL for one in result.runs):
        output.finish(is_over=True)
    else:
        output.stop()
    output.progress.say_end()


def _show_end(
    workspace: Workspace, end: _End, watching: Watching, left: ControllerRow | None
) -> None:
    from fleetform.cli.summary import show_interrupted, show_summary

    if end.result is not None:
        show_summary(
            workspace,
            end.result,
            began_ms=end.began_ms,
            finished=watching.finished,
            printed=end.printed,
            failures=end.failures,
            left_blocked=0 if end.changes else end.blocked,
        )
        say_left(workspace, left)
        return
    # The terminal may be closed: the line is lost then.
    with contextlib.suppress(OSError):
        show_interrupted(workspace, left)


def _record(stack: contextlib.ExitStack, path: str | None) -> JsonProgress | None:
    if path is None:
        return None
    file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 -- the stack closes it
    # Each line was flushed when it was written, and one that could not be was said then.
    stack.callback(_close, file)
    return JsonProgress(file)


def _close(file: TextIO) -> None:
    with contextlib.suppress(OSError):
        file.close()


@contextlib.contextmanager
def _watch(watching: Watching, output: RunOutput | None) -> Iterator[Progress]:
    """Choose between the output of one run, the live screen and plain lines."""
    if output is not None:
        output.start()
        try:
            yield output.progress
        except BaseException:
            # The plan was refused: the thread that reads the output has nothing to wait for.
            with contextlib.suppress(OSError):
                output.stop()
            raise
        return
    out = screen()
    # What jobs print scrolls; a table that stays in place would fight with it for the screen.
    if not out.interactive or watching.show_output or watching.detach:
        yield PlainProgress(out, errors=error_screen(), show_output=watching.show_output)
        return
    from rich.console import Console

    from fleetform.cli.progress.live import LiveProgress

    with LiveProgress(Console(file=out.stream, no_color=not out.colour)) as live:
        yield live


# Plan and apply of a few resources, for commands that have just changed them.


def apply_scoped(
    workspace: Workspace,
    scope: Scope,
    *,
    yes: bool,
    watching: Watching,
    ends_work: bool = False,
) -> int:
    """
    Show the plan of `scope`, ask, carry it out; returns the exit code.

    Permissions are those of the environment's rules: who needs more passes it to `apply`. With
    `ends_work` a user has named the runs that are to end, which is what `--allow-destroy` would say.

    A `serve` that sees the edit may be faster, and enter it as its own: what is meant is followed
    to its end all the same, also if another process entered it.
    """
    from fleetform.plan.exit import apply_code
    from fleetform.plan.wait_targets import waited_for

    def made() -> Plan:
        return plan_scoped(workspace, scope, ends_work=ends_work)

    plan = plan_after_earlier(workspace, made, yes=yes)
    show_plan(screen(), plan)
    follows = 0 if watching.detach else following(plan)
    # The edit is what was asked for: where it is blocked, the run that it is about goes on as it is.
    waits = not watching.detach and not plan.held and bool(waited_for(plan))
    if plan.recovering or (plan.is_empty and not follows and not waits):
        say_if_blocked(plan)
        if plan.progressing and not plan.recovering:
            say_left(workspace, leave(workspace))
        return apply_code(plan)
    confirm(plan, yes=yes, follows=follows)
    return carry_out(workspace, plan, watching, again=made, unasked=yes)


def plan_scoped(
    workspace: Workspace,
    scope: Scope,
    *,
    keep_going: bool = False,
    ends_work: bool = False,
    quiet: bool = False,
) -> Plan:
    """Plan a part of the configuration; `quiet`: print no findings, because the caller has."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.plan import make_plan
    from fleetform.model.plan import Permissions

    loaded = load(workspace, keep_going=keep_going, quiet=quiet)
    permissions = Permissions(allow_destroy=ends_work)
    plan = make_plan(workspace, loaded, permissions, scope, now_ms=SystemClock().now_ms())
    if not quiet:
        print_plan_warnings(loaded, plan)
    return plan


# The fleet of the default environment: `submit` applies it without a review, for nothing else is there.

_TRIES_MAX = 5
"""How often another first `submit` may be faster before that is an error."""


def apply_default_fleet(workspace: Workspace) -> None:
    """
    Create this machine's fleet in the default environment; nothing where another process has.

    Raises:
        StalePlan: Others were faster again and again.
        Refused: The fleet could not be created.
    """
    from fleetform.app.apply import apply_plan
    from fleetform.app.workspace import FLEET
    from fleetform.model.plan import Scope
    from fleetform.model.refusals import StalePlan

    scope = Scope(targets=(f"fleet/{FLEET}",))
    for turn in range(_TRIES_MAX):
        plan = plan_after_earlier(
            workspace, lambda: plan_scoped(workspace, scope, keep_going=True), yes=True
        )
        if plan.is_empty:
            return
        progress = PlainProgress(error_screen())
        with Interrupts() as interrupts:
            try:
                result = interrupts.run(
                    apply_plan(workspace, plan, who=who_asks(), detach=True, progress=progress)
                )
            except StalePlan:
                if turn == _TRIES_MAX - 1:
                    raise
                continue
            finally:
                interrupts.shield(lambda: leave_quietly(workspace))
        if result.failed_steps:
            raise Refused(
                f"the fleet {FLEET} of the default environment could not be created",
                advice=f"`fleetform apply -C {workspace.root}` shows the plan, and tries again",
            )
        return

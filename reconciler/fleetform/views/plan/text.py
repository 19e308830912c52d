"""
A plan as people read it in a terminal.

    ~ task train  updated in place
        priority: 10 → 50

One block a change: sign, address, reason, then the fields, before and after. Blocked changes follow
with what would unblock them, then changes that are not supported yet. The last line counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from functools import lru_cache

from fleetform.model.plan import Action, Held, HeldBy, Plan
from fleetform.views.lineage import OUTDATED_HEADLINE, changes_text, outdates_text, stale_results
from fleetform.views.lines import BLANK, Line, Span, line, printable
from fleetform.views.moments import moment
from fleetform.views.overrides import in_force_notice
from fleetform.views.plan.costs import total_cost_texts
from fleetform.views.plan.groups import (
    ALL_OF_THEM,
    Group,
    HeldGroup,
    field_lines,
    group_changes,
    split_held,
)
from fleetform.views.plan.notes import (
    SEEN_EARLIER,
    block_facts,
    command_lines,
    depth_text,
    drift_text,
    earlier_drift,
    earlier_runs,
    forecast_lines,
    late_texts,
    names_text,
    progressing,
    silent_texts,
    still_aborted_text,
    unknown_texts,
)
from fleetform.views.plan.preview import demand_preview_texts
from fleetform.views.plan.rollouts import rollout_texts
from fleetform.views.plan.summary import executions, summary
from fleetform.views.plan.unfinished import unfinished_texts
from fleetform.views.reasons import HELD_BY, blocked_text, reason_sentence

SIGNS: dict[Action, tuple[str, str]] = {
    Action.CREATE: ("+", "good"),
    Action.ADOPT: ("+", "good"),
    Action.UPDATE: ("~", "warn"),
    Action.REPLACE: ("-/+", "warn"),
    Action.DELETE: ("-", "bad"),
    Action.FORGET: (".", "dim"),
    Action.ARCHIVE: (">", "dim"),
}

LIST_MAX = 10
"""Names of a list that are shown before `and N more`."""


def render(plan: Plan) -> tuple[Line, ...]:
    """The whole plan; lines have any length, the caller may cut them."""
    return tuple(rendered(plan))


def rendered(plan: Plan) -> Iterator[Line]:
    """The same line by line: a plan of a hundred thousand changes is never all in memory."""
    yield from _header(plan)
    yield from _overrides(plan)
    yield from _warnings(plan)
    yield from _changes(plan)
    yield from _held(plan)
    yield from _deferred(plan)
    yield from _settled(plan)
    yield from _stale(plan)
    yield from _earlier_drift(plan)
    yield from _progressing(plan)
    yield from _last(plan)
    yield from _forecast(plan)
    yield from _commands(plan)


def rendered_rest(plan: Plan) -> Iterator[Line]:
    """Show the changes of a plan and what they cost: the rest was shown when it was approved."""
    yield from _changes(plan)
    if costs := total_cost_texts(plan):
        yield from (line((cost, "bold")) for cost in costs)
        yield BLANK


def _header(plan: Plan) -> Iterator[Line]:
    commit = f"at {short_commit(plan.commit)}" if plan.commit else "outside git"
    yield line(
        "Environment ",
        (printable(plan.environment_name), "bold"),
        (f"  {commit}, {depth_text(plan)}", "dim"),
    )
    yield BLANK


def short_commit(commit: str) -> str:
    """Write twelve digits of a commit, and whether the configuration differs from it."""
    digits, plus, dirty = printable(commit).partition("+")
    return f"{digits[:12]}{plus}{dirty}"


def _overrides(plan: Plan) -> Iterator[Line]:
    """Overrides outrank the configuration, so they come before the changes."""
    if notice := in_force_notice(plan.overrides):
        yield line(("! ", "bad"), notice)
        yield BLANK


def _warnings(plan: Plan) -> Iterator[Line]:
    for sentence in (*unfinished_texts(plan), *plan.warnings):
        yield line(("! ", "warn"), printable(sentence))
        yield BLANK


# -- changes -------------------------------------------------------------------------------


def _changes(plan: Plan) -> Iterator[Line]:
    for group in group_changes(plan.changes):
        yield from _block(plan, group)
        yield BLANK


def _block(plan: Plan, group: Group, *, ceiling: bool = False) -> Iterator[Line]:
    change = group.first
    yield _title(group)
    tones = {**_FACT_TONES, "impact": "bad" if change.destructive else "dim"}
    for name, text in block_facts(plan, group, ceiling=ceiling):
        yield line("      ", (f"{name}: ", tones[name]), printable(text))
    if change.replaces and group.is_many:
        yield from _pairs(group)
    if names := group.names:
        yield line("      ", ("elements: ", "dim"), names)
    yield from field_lines(group)


def _title(group: Group) -> Line:
    change = group.first
    if change.replaces and not group.is_many:
        reason = f"replaces {printable(change.replaces)}"
    else:
        reason = reason_sentence(*group.changes)
    title = Span(group.title, "bold")
    if not reason:
        return Line((_SIGN_SPANS[change.action], title))
    return Line((_SIGN_SPANS[change.action], title, _dim(f"  {reason}")))


_FACT_TONES = {
    "hosts removed": "warn",
    "sets up": "info",
    "creates": "info",
    "replaces": "warn",
    "scales": "info",
    "account": "dim",
    "image": "dim",
    "root disk": "dim",
    "hosts end themselves": "dim",
    "next offers": "dim",
    "warning": "warn",
    "refused lately": "warn",
    "preview": "info",
    "preview failed": "bad",
    "cost": "info",
}

_SIGN_SPANS = {action: Span(f"{sign:>3} ", tone) for action, (sign, tone) in SIGNS.items()}


@lru_cache(maxsize=64)  # Most of a great plan has one reason.
def _dim(text: str) -> Span:
    return Span(text, "dim")


def _pairs(group: Group) -> Iterator[Line]:
    for change in group.changes[:LIST_MAX]:
        yield line(
            "      ",
            (printable(change.replaces), "bad"),
            (" → ", "dim"),
            (printable(change.key.name), "good"),
        )
    yield from _more(group.changes[LIST_MAX:])


def _more(rest: Sized) -> Iterator[Line]:
    if rest:
        yield line("      ", (f"and {len(rest)} more: {ALL_OF_THEM}", "dim"))


# -- the rest ------------------------------------------------------------------------------


def _held(plan: Plan) -> Iterator[Line]:
    held, beyond = split_held(plan.held)
    if held:
        yield line(("Blocked:", "bold"))
        yield BLANK
    for one in held:
        yield from _held_block(plan, one)
        yield BLANK
    if beyond:
        yield line(("Not supported yet, so not applied:", "bold"))
        yield BLANK
    for one in beyond:
        yield from _block(plan, one.group, ceiling=True)
        yield line("      ", ("blocked: ", "warn"), printable(one.held.detail))
        yield BLANK


def _held_block(plan: Plan, one: HeldGroup) -> Iterator[Line]:
    yield from _block(plan, one.group)
    detail = printable(blocked_text(HELD_BY[one.held.by], one.held.detail))
    detail += _open_until(plan, one.held)
    yield line("      ", ("blocked: ", "warn"), detail)
    if one.held.cure:
        yield line("      ", ("to unblock: ", "info"), printable(one.held.cure))


def _open_until(plan: Plan, held: Held) -> str:
    """Until when a freeze window holds, from the annex: `, until 2027-01-02T00:00:00Z`."""
    if held.by is not HeldBy.WINDOW:
        return ""
    ends = [
        one["end_ms"]
        for one in plan.annex.get("windows", ())
        if one["open"] and one["reason"] == held.detail
    ]
    return f", until {moment(max(ends))}" if ends else ""


def _deferred(plan: Plan) -> Iterator[Line]:
    """Differences that this plan was not asked for: one line each."""
    if not plan.deferred:
        return
    why = {one.change.key: one.why for one in plan.deferred}
    groups = group_changes(one.change for one in plan.deferred)
    yield line(("Deferred:", "bold"))
    for group in groups[:LIST_MAX]:
        sign, tone = SIGNS[group.first.action]
        yield line(Span(f"{sign:>3} ", tone), group.title, (f"  {why[group.first.key]}", "dim"))
    yield from _more([change for group in groups[LIST_MAX:] for change in group.changes])
    yield BLANK


def _settled(plan: Plan) -> Iterator[Line]:
    for earlier in earlier_runs(plan):
        yield line((f"{earlier.headline}:", "bold"))
        for one in earlier.runs[:LIST_MAX]:
            detail = f": {printable(one.detail)}" if one.detail else ""
            yield line(
                ("  ! ", "bad" if one.is_failure else "warn"),
                f"{printable(one.key.name)} {one.state}{detail}",
            )
        yield from _more(earlier.runs[LIST_MAX:])
        yield BLANK
    if text := still_aborted_text(plan):
        yield line(("! ", "warn"), text)
        yield BLANK


def _stale(plan: Plan) -> Iterator[Line]:
    if text := outdates_text(plan):
        yield line(("~ ", "warn"), printable(text))
        yield BLANK
    stale = stale_results(plan)
    if not stale:
        return
    yield line((f"{OUTDATED_HEADLINE}:", "bold"))
    for one in stale[:LIST_MAX]:
        why = changes_text(one.inputs, one.document)
        yield line(("  ~ ", "warn"), f"{printable(one.key.name)}: {printable(why)}")
    yield from _more(stale[LIST_MAX:])
    yield BLANK


def _earlier_drift(plan: Plan) -> Iterator[Line]:
    if not (drift := earlier_drift(plan)):
        return
    yield line((SEEN_EARLIER, "bold"))
    for one in drift[:LIST_MAX]:
        yield line(("  ! ", "warn"), drift_text(plan, one))
    yield from _more(drift[LIST_MAX:])
    yield BLANK


def _progressing(plan: Plan) -> Iterator[Line]:
    # What is held is shown above with all there is to say.
    held = {one.change.key for one in plan.held}
    if keys := [key for key in progressing(plan) if key not in held]:
        yield line(("In progress: ", "info"), names_text(keys))
    for sentence in late_texts(plan):
        yield line(("  ! ", "warn"), sentence)
    if keys or late_texts(plan):
        yield BLANK
    for sentence in rollout_texts(plan):
        yield line(("~ ", "info"), sentence)
        yield BLANK
    for sentence in silent_texts(plan)[:LIST_MAX]:
        yield line(("! ", "warn"), sentence)
    yield from _more(silent_texts(plan)[LIST_MAX:])
    if silent_texts(plan):
        yield BLANK
    for sentence in unknown_texts(plan):
        yield line(("! ", "bad"), sentence)
        yield BLANK


def _last(plan: Plan) -> Iterator[Line]:
    tone = "bold" if plan.changes or plan.held or plan.settled else "good"
    yield line((summary(plan), tone))
    if sentence := executions(plan):
        yield line((sentence, "warn"))
    for cost in (*total_cost_texts(plan), *demand_preview_texts(plan)):
        yield line((cost, "bold"))


def _commands(plan: Plan) -> Iterator[Line]:
    *lost, advice = command_lines(plan) or ("",)
    for sentence in lost:
        yield line(("! ", "warn"), sentence)
    if lost:
        yield line(f"  {advice}")


def _forecast(plan: Plan) -> Iterator[Line]:
    for sentence in forecast_lines(plan):
        yield line((sentence, "dim"))

"""Why a result is outdated: the same words in plan, `ps`, `why` and API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.model.figures import counted, first_of
from fleetform.model.lineage import InputEvent
from fleetform.model.run_state import Outdated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.model.lineage import InputChange
    from fleetform.model.plan import Plan, StaleResult

OUTDATED_HEADLINE = "Outdated results: their inputs or documents have changed; `fleetform rerun NAME` makes new ones"

NAMED_MAX = 2
"""Inputs that are named; `ps` has one line for all of it, and `--format json` has every one."""

_OUTDATES_MAX = 10

_PHRASES = {
    InputEvent.RERUN: "{} was re-run",
    InputEvent.ADDED: "{} was added",
    InputEvent.REMOVED: "{} was removed",
    InputEvent.CHANGED: "the results of {} have changed",
    InputEvent.LOST: "the data of volume {} was lost",
    InputEvent.OUTDATED: "its input {} is itself outdated: re-run that first",
}

_DOCUMENT = {
    Outdated.INHERITED: "inherited values changed",
    Outdated.DOCUMENT: "its document changed after it started",
}


def stale_results(plan: Plan) -> tuple[StaleResult, ...]:
    """Those of which the plan's changes do not speak anyway."""
    changed = {change.key for change in plan.changes}
    return tuple(one for one in plan.stale if one.key not in changed)


def stale_text(inputs: Sequence[InputChange], document: Outdated) -> str:
    """Say in one line that a result is outdated, and why; empty for one that is not."""
    why = changes_text(inputs, document)
    return f"outdated result: {why}" if why else ""


def changes_text(inputs: Sequence[InputChange], document: Outdated) -> str:
    """Say which inputs of a result have changed, and how."""
    parts = [_PHRASES[event].format(name) for name, event in inputs[:NAMED_MAX]]
    if len(inputs) > NAMED_MAX:
        parts.append(f"{counted(len(inputs) - NAMED_MAX, 'more input')} changed")
    if document in _DOCUMENT:
        parts.append(_DOCUMENT[document])
    return ", ".join(parts)


def outdates_text(plan: Plan) -> str:
    """Write `These results become outdated: best, report`; empty where the plan outdates none."""
    names = plan.annex.get("outdates", ())
    if not names:
        return ""
    return f"These results become outdated: {first_of(names, _OUTDATES_MAX)}"

"""
A freeze window, of those last applied, that is open when the plan is made.

Which window it is stands in the plan; until when is in the annex, as times are.
"""

from __future__ import annotations

from fleetform.model.ledger import LedgerStatus
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Change, Held, HeldBy
from fleetform.model.verbs import Verb
from fleetform.model.windows import is_held, open_spell
from fleetform.plan.draft import PlanDraft

_CURE = "plan again when it is over, or suspend it for a limited time with `fleetform emergency thaw --reason …`"


def hold_in_window(draft: PlanDraft) -> None:
    if not draft.rules.freeze:
        return
    spell = open_spell(draft.rules, draft.overrides, draft.now_ms)
    if spell is None:
        return
    for key, change in list(draft.changes.items()):
        if is_held(spell, change, draft.rules):
            draft.hold(key, HeldBy.WINDOW, spell.window.reason, _CURE)


# What people have put above the tree, as far as a plan is concerned.
# A freeze holds everything. A stop holds what would make one of its runs begin, and nothing else:
# what ends such a run, or only its record, is carried out, so that the commit that makes the stop
# permanent can be applied while it holds.


def hold_overridden(draft: PlanDraft) -> None:
    freeze = next((one for one in draft.overrides if one.kind is OverrideKind.FREEZE), None)
    stops = [one for one in draft.overrides if one.kind is OverrideKind.STOP]
    if freeze is None and not stops:
        return
    for key, change in list(draft.changes.items()):
        override = freeze or _stop_of(stops, change)
        if override is not None:
            draft.hold(key, HeldBy.OVERRIDE, override.sentence, _cure(override))


def _stop_of(stops: list[Override], change: Change) -> Override | None:
    if change.key.kind != "run" or not any(step.verb == Verb.RUN_SUBMIT for step in change.steps):
        return None
    return next((one for one in stops if one.stops(change.key.name, change.parent)), None)


def _cure(override: Override) -> str:
    lift = f"`fleetform emergency lift {override.number}`"
    return lift if override.until_ms is None else f"it expires by itself; end it now with {lift}"


# An earlier apply has not finished with a resource: it is resumed before anything else.

_UNFINISHED = "an earlier apply has not finished its change"


def hold_unfinished(draft: PlanDraft) -> None:
    for key, change in list(draft.changes.items()):
        row = draft.live.resources.get(draft.row_key(change))
        if row is not None and row.operation:
            draft.hold(key, HeldBy.DEPENDENCY, _UNFINISHED, "`fleetform apply` resumes it")


def is_unfinished(held: Held) -> bool:
    """Tell whether the change is blocked until an earlier apply has finished with its resource."""
    return held.by is HeldBy.DEPENDENCY and held.detail == _UNFINISHED


# The world remembers another ledger: nothing starts, stops or goes until that is settled.


def hold_while_recovering(draft: PlanDraft) -> None:
    if draft.live.status is not LedgerStatus.RECOVERING:
        return
    detail = "; ".join(draft.live.notes) or "hosts know a newer ledger than this one"
    for key in list(draft.changes):
        draft.hold(key, HeldBy.RECOVERING, detail, "fleetform state rebuild")


def recovery_warnings(draft: PlanDraft) -> tuple[str, ...]:
    """Say that the ledger is recovering also where nothing differs: it may be wrong about that."""
    if draft.live.status is not LedgerStatus.RECOVERING:
        return ()
    why = f": {draft.live.notes[0]}" if draft.live.notes else ""
    return (f"The ledger is recovering{why}. `fleetform state rebuild` asks the hosts.",)

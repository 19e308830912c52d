"""
What a plan does about drift, where somebody has asked the world.

Only what is cured without a loss is corrected. What needs a decision is held, so that nobody
overlooks it, and what the tree changes anyway needs nothing further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleetform.model.drift import Drift, Remedy, expected_and_seen
from fleetform.model.drift_table import TABLE
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, FieldChange, Held, HeldBy, Reason, Step
from fleetform.model.selection import Selection
from fleetform.plan.draft import Proposal, Sheet
from fleetform.plan.kinds import KINDS
from fleetform.plan.steps import make_step
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.ignore_changes import overlook, overlooks
from fleetform.spec.names import natural_order

__all__ = ["correct_drift"]

_VERBS = {"fleet": "fleet.update", "volume": "volume.update"}
"""What makes a resource so again as its last applied document says; twice is the same as once."""


_NAMED_MAX = 10


def correct_drift(sheet: Sheet) -> None:
    """Propose what sets right what has drifted, or hold what a person must decide."""
    anew = Selection(sheet.scope.replaces)
    for key, drifts in _by_resource(sheet).items():
        row, declared = sheet.present.get(key), sheet.wanted.get(key)
        if row is not None and declared is not None and _begins_anew(anew, key, drifts):
            # Whatever a replacement would be judged by, there is nothing left to lose.
            sheet.changes.pop(key, None)
            sheet.held.pop(key, None)
            change = _change(_as_it_stays(declared, row), row, drifts, take="any", lost=True)
            sheet.add(
                Proposal(
                    replace(
                        change,
                        action=Action.REPLACE,
                        reasons=(Reason.REPLACE_ASKED, Reason.DATA_LOST),
                        at_stake=_users_text(sheet, key),
                    )
                )
            )
            continue
        # What goes needs no correction.
        if row is None or declared is None or key in sheet.held:
            continue
        undecided = [one for one in drifts if one.remedy is Remedy.DECIDE]
        if key in sheet.changes:
            # What is changed anyway is made anew with that. A change in place of data that is gone
            # would be of nothing.
            if undecided and _stays_in_place(sheet.changes[key]):
                sheet.hold(key, HeldBy.DRIFT, *_told(undecided))
            continue
        curable = [one for one in drifts if one.remedy is Remedy.APPLY]
        if undecided and _has_verb(key):
            sheet.held[key] = _held(_as_it_stays(declared, row), row, undecided)
        elif curable and _has_verb(key):
            sheet.add(Proposal(_change(_as_it_stays(declared, row), row, curable)))


def _begins_anew(anew: Selection, key: ResourceKey, drifts: Sequence[Drift]) -> bool:
    """Tell whether a person has said of a volume that is gone that an empty one shall follow it."""
    gone = key.kind == "volume" and any(one.field == "directory" for one in drifts)
    return gone and anew.selects(key, "")


def _users_text(sheet: Sheet, volume: ResourceKey) -> str:
    """Name the runs of the configuration that mount a volume whose data is lost."""
    names = sorted(
        {
            one.parent or key.name
            for key, one in sheet.wanted.items()
            if key.kind == "run" and volume in one.references
        },
        key=natural_order,
    )
    if not names:
        return "its data is lost already, and no run mounts it"
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"its data is lost already; runs that mount it: {', '.join(names[:_NAMED_MAX])}{more}"


def _stays_in_place(change: Change) -> bool:
    return change.key.kind == "volume" and change.action is Action.UPDATE


def _as_it_stays(declared: Declared, row: LiveResource) -> Declared:
    """What does not count is not corrected either."""
    if not overlooks(declared):
        return declared
    return overlook(declared, row.document, row.digest, row.own_digest)


def _by_resource(sheet: Sheet) -> dict[ResourceKey, list[Drift]]:
    found: dict[ResourceKey, list[Drift]] = {}
    if not sheet.permissions.destroy:
        for one in sheet.live.drift:
            found.setdefault(one.resource, []).append(one)
    return found


def _has_verb(key: ResourceKey) -> bool:
    return key.kind in _VERBS


def _held(declared: Declared, row: LiveResource, drifts: Sequence[Drift]) -> Held:
    return Held(_change(declared, row, drifts), HeldBy.DRIFT, *_told(drifts))


def _told(drifts: Sequence[Drift]) -> tuple[str, str]:
    """What a person is to decide, and what releases it."""
    first = drifts[0]
    what = "; ".join(expected_and_seen(one.path, one.expected, one.seen) for one in drifts)
    return what, TABLE[first.resource.kind, first.field].cure.replace("NAME", first.resource.name)


def _change(declared: Declared, row: LiveResource, drifts: Sequence[Drift], **more: Any) -> Change:
    return Change(
        key=declared.key,
        action=Action.UPDATE,
        reasons=(Reason.DRIFTED,),
        type=declared.type,
        fields=tuple(
            FieldChange(one.path, one.seen, one.expected, field_class="control") for one in drifts
        ),
        steps=(_step(declared, more),),
        uid=row.uid,
        generation=row.generation,
        parent=row.parent,
        element=row.element,
    )


def _step(declared: Declared, more: Mapping[str, Any]) -> Step:
    """The same as makes it, for the world keeps what is there already."""
    made = KINDS[declared.key.kind].create(declared).change.steps[0]
    return make_step(_VERBS[declared.key.kind], declared.key, {**made.arguments, **more})

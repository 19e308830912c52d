"""
Directories of released volumes, and the volumes that are declared there now.

A volume of the same name and path is the same volume: it comes back, with its uid and its data,
whether it left the tree, was somewhere else in between, or went with everything. A volume of
another name is somebody's mistake or needs `import:`; a host would refuse it, perhaps after
something else was let go, so the plan holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetform.model.plan import Action, Change, HeldBy, Reason, Step
from fleetform.model.verbs import TAKES_PATH, Verb
from fleetform.model.volume import DISK, RetainedData
from fleetform.plan.draft import PlanDraft
from fleetform.spec.folders import Places

__all__ = ["take_back"]


def take_back(draft: PlanDraft) -> None:
    """Return released data to its volume, and block a volume that would be in another one's data."""
    left = Places((one.path, one) for one in draft.live.left)
    # Where nothing was left, only what a change itself lets go can be in its way.
    for change, step in tuple(_taking(draft, steps_min=1 if draft.live.left else 2)):
        place = step.arguments["path"]
        there = _released_by(draft, change, place) or next(reversed(left.at(place)), None)
        if there is None:
            _hold_inside_another(draft, change, place, left)
        elif step.verb == Verb.VOLUME_ADOPT:
            continue  # Whoever asks for what is found there may have it under any name.
        elif there.volume == draft.known_as(change.key).name:
            draft.changes[change.key] = _returned(change, step, there)
        else:
            draft.hold(
                change.key,
                HeldBy.DEPENDENCY,
                f"{there.path} contains the data of {_whose(change, there)}, which was released",
                _cure(change),
            )


def _released_by(draft: PlanDraft, change: Change, place: str) -> RetainedData | None:
    """The data that this change itself releases there: another fleet of one machine has the same folder."""
    for step in change.steps:
        if step.verb == Verb.VOLUME_FORGET and step.arguments["path"] == place:
            return RetainedData(draft.known_as(change.key).name, change.uid, place)
    return None


def _taking(draft: PlanDraft, *, steps_min: int) -> Iterator[tuple[Change, Step]]:
    changes = draft.changes
    many = (key for key in changes if key.kind == "volume" and len(changes[key].steps) >= steps_min)
    for key in sorted(many):
        change = changes[key]
        for step in change.steps:
            if step.verb in TAKES_PATH and DISK not in step.arguments:
                yield change, step


def _hold_inside_another(
    draft: PlanDraft, change: Change, place: str, left: Places[RetainedData]
) -> None:
    near = _inside_another(place, left)
    if near is None:
        return
    how, other = near
    draft.hold(
        change.key,
        HeldBy.DEPENDENCY,
        f"{how}, which contains the data of the released volume {other.volume}",
        f"declare a path that neither contains {other.path} nor is inside it: a directory belongs to"
        " one volume, with everything in it",
    )


def _inside_another(place: str, left: Places[RetainedData]) -> tuple[str, RetainedData] | None:
    """Say which of two directories lies in the other, where one of them is left."""
    for outer in left.around(place):
        return f"{place} is in {outer.path}", outer
    for inner in left.within(place):
        return f"{inner.path} is in {place}", inner
    return None


def _returned(change: Change, step: Step, there: RetainedData) -> Change:
    back = replace(step, arguments={**step.arguments, "returns": there.uid})
    reasons = change.reasons
    if change.action is Action.CREATE:
        reasons = tuple(one for one in reasons if one is not Reason.ABSENT)
    return replace(
        change,
        reasons=(Reason.RETURNED, *reasons) if not reasons else (*reasons, Reason.RETURNED),
        steps=tuple(back if one is step else one for one in change.steps),
    )


def _whose(change: Change, there: RetainedData) -> str:
    # What was renamed has the name by now, and not the data that somebody left under it.
    is_namesake = there.volume == change.key.name
    return f"{'an earlier ' if is_namesake else ''}volume {there.volume}"


def _cure(change: Change) -> str:
    if change.action is Action.CREATE:
        return (
            f"write `import: [{change.key}]` in environment.yaml to adopt it, or choose another"
            " path"
        )
    return "choose another path: only a volume that is not in the ledger can be imported"

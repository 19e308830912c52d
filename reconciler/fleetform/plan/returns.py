"""
Directories that volumes were let go from, and what is declared to lie there now.

A volume of the same name and path is the same volume: it comes back, with its uid and its data,
whether it left the tree, was somewhere else in between, or went with everything. A volume of
another name is somebody's mistake or needs `import:`; a host would refuse it, perhaps after
something else was let go, so the plan holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetform.model.left_data import LeftData, is_within, place_of
from fleetform.model.plan import Action, Change, HeldBy, Reason, Step
from fleetform.plan.proposal import Sheet

__all__ = ["take_back"]

_TAKES = frozenset({"volume.make", "volume.adopt"})


def take_back(sheet: Sheet) -> None:
    """Let what was let go come back, and hold what would lie in another one's data."""
    left = {place_of(one.path): one for one in sheet.live.left}
    for change, step in tuple(_taking(sheet)):
        place = place_of(step.arguments["path"])
        there = _let_go_by(change, place) or left.get(place)
        near = there or _near(place, left)
        if near is None:
            continue
        if there is None:
            sheet.hold(
                change.key,
                HeldBy.DEPENDENCY,
                f"{_lie(place, near)}, where the data of volume {near.volume} was kept",
                f"declare a path beside {near.path}: a directory is one volume's, with all that"
                " lies in it",
            )
        elif step.verb == "volume.adopt":
            continue  # Whoever asks for what is found there may have it under any name.
        elif there.volume == change.key.name:
            sheet.changes[change.key] = _returned(change, step, there)
        else:
            sheet.hold(
                change.key,
                HeldBy.DEPENDENCY,
                f"{there.path} keeps the data of volume {there.volume}, which was let go",
                _cure(change),
            )


def _let_go_by(change: Change, place: str) -> LeftData | None:
    """What this change itself lets go there: another fleet of one machine has the same folder."""
    for step in change.steps:
        if step.verb == "volume.forget" and place_of(step.arguments["path"]) == place:
            return LeftData(change.key.name, change.uid, step.arguments["path"])
    return None


def _taking(sheet: Sheet) -> Iterator[tuple[Change, Step]]:
    for key in sorted(sheet.changes):
        if key.kind == "volume":
            change = sheet.changes[key]
            yield from ((change, step) for step in change.steps if step.verb in _TAKES)


def _near(place: str, left: dict[str, LeftData]) -> LeftData | None:
    return next(
        (left[one] for one in sorted(left) if is_within(place, one) or is_within(one, place)), None
    )


def _lie(place: str, near: LeftData) -> str:
    if is_within(place, place_of(near.path)):
        return f"{place} lies in {near.path}"
    return f"{near.path} lies in {place}"


def _returned(change: Change, step: Step, there: LeftData) -> Change:
    back = replace(step, arguments={**step.arguments, "returns": there.uid})
    reasons = change.reasons
    if change.action is Action.CREATE:
        reasons = tuple(one for one in reasons if one is not Reason.ABSENT)
    return replace(
        change,
        reasons=(Reason.RETURNED, *reasons) if not reasons else (*reasons, Reason.RETURNED),
        steps=tuple(back if one is step else one for one in change.steps),
    )


def _cure(change: Change) -> str:
    if change.action is Action.CREATE:
        return (
            f"write `import: [{change.key}]` in environment.yaml to take it in, or choose another"
            " path"
        )
    return "choose another path: only a volume that is not there yet can be imported"

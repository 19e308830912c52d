"""
A directory belongs to one volume, with all its content: a volume to create or adopt waits until its
place is free.

A volume that was given another name without `moved:` is one that goes and one that comes, in one
place. Taken over too early, its data would be the new one's while the old one still stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetform.model.live import changed_rows
from fleetform.model.plan import Change, HeldBy
from fleetform.model.verbs import EMPTIES_PATH, FREES_PATH, TAKES_PATH, Verb
from fleetform.model.volume import DISK
from fleetform.plan.blockers.dependency import hold_dependants
from fleetform.plan.draft import PlanDraft
from fleetform.spec.desired import ResourceKey
from fleetform.spec.folders import Places

__all__ = ["hold_taken_places", "places_freed"]


_SAME = "still has this directory"


def hold_taken_places(draft: PlanDraft) -> None:
    taking = _taking(draft)
    if not taking:
        return
    # What is there as it is declared is in nobody's way: no two that are declared have one place.
    rows = {key: row for key, row in changed_rows(draft.present).items() if key.kind == "volume"}
    there, before = list(rows.values()), len(draft.held)
    # Whoever is held here has its own place still: it is looked at once more.
    for row in there:
        verbs = _verbs(draft.changes.get(row.key))
        for key, how in _overlapping(taking, _place(row.parsed)):
            if key not in draft.changes or _gives_way(
                verbs, _verbs(draft.changes[key]), how, is_itself=key == row.key
            ):
                continue
            draft.hold(key, HeldBy.DEPENDENCY, f"{row.key} {how}", _cure(row.key, key, verbs, how))
            if key in rows:
                there.append(rows[key])
    if len(draft.held) > before:
        # What needs it waits with it.
        hold_dependants(draft)


def places_freed(draft: PlanDraft) -> Mapping[ResourceKey, tuple[str, ...]]:
    """For each volume that comes into or around the place of others: the steps that end those."""
    taking = _taking(draft)
    freed: dict[ResourceKey, tuple[str, ...]] = {}
    for change in draft.changes.values() if taking else ():
        for step in change.steps:
            if step.verb in FREES_PATH:
                for key, _ in _overlapping(taking, _place(step.arguments)):
                    if key != step.resource:
                        freed[key] = (*freed.get(key, ()), step.key)
    return freed


def _gives_way(verbs: frozenset[str], taking: frozenset[str], how: str, *, is_itself: bool) -> bool:
    """Tell whether a volume that these are the steps of leaves room for one that comes."""
    # What is only forgotten keeps its data and its mark: whoever is to have it has to say so, and
    # nothing is put around or into it.
    if how == _SAME and (
        is_itself or (Verb.VOLUME_FORGET in verbs and Verb.VOLUME_ADOPT in taking)
    ):
        return True
    return bool(verbs & EMPTIES_PATH)


def _cure(key: ResourceKey, other: ResourceKey, verbs: frozenset[str], how: str) -> str:
    if how == _SAME and Verb.VOLUME_FORGET in verbs:
        return (
            f"add `moved:` if it is the same volume, write `import: [{other}]` to adopt the data that"
            f" {key} leaves there, or choose another path"
        )
    if how == _SAME:
        return f"apply again once {key} is removed, or add `moved:` if it is the same volume"
    if Verb.VOLUME_FORGET in verbs:
        return (
            f"choose a path outside the data of {key}, which is kept, or first apply another"
            " `deletion_policy` there"
        )
    return f"apply again once {key} is removed"


def _overlapping(taking: Places[ResourceKey], place: str) -> Iterator[tuple[ResourceKey, str]]:
    """Yield what comes to a volume's place, or around it or within, and what that one does."""
    for key in taking.at(place):
        yield key, _SAME
    for key in taking.within(place):
        yield key, "still has a directory that contains this one"
    for key in taking.around(place):
        yield key, "still has a directory inside this one"


def _taking(draft: PlanDraft) -> Places[ResourceKey]:
    """Which volumes come into which places."""
    return Places(
        (_place(step.arguments), step.resource)
        for change in draft.changes.values()
        if change.key.kind == "volume"
        for step in change.steps
        if step.verb in TAKES_PATH and DISK not in step.arguments
    )


def _verbs(change: Change | None) -> frozenset[str]:
    return frozenset(step.verb for step in change.steps) if change is not None else frozenset()


def _place(said: object) -> str:
    """Fleets of one machine have one file system: whose hosts mount it makes no other directory."""
    assert isinstance(said, dict)
    path = said.get("path", "")
    assert isinstance(path, str)
    return path

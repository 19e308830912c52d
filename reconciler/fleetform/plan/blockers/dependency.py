"""
What follows from something else being held.

Downwards: what is to be made waits for what it refers to and is not there, or is to be another
one there: it would begin on what goes. Upwards: what is to be removed stays while something that
stays refers to it. A fleet comes after volumes in this, because a volume that stays keeps its
fleet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from fleetform.model.live import LiveResource, references_of
from fleetform.model.plan import Action, Change, HeldBy
from fleetform.model.verbs import REFERRED, USED_AT_WORK
from fleetform.plan.blockers.protection import hold_volumes_in_use
from fleetform.plan.draft import LEAVING, PlanDraft, begins_on, is_replaced
from fleetform.plan.phase import documents_at_work
from fleetform.spec.desired import Declared, ResourceKey

_ACTIONS = frozenset({Action.CREATE, Action.ADOPT, Action.REPLACE, Action.UPDATE})

_CURE = "unblock {key} first"


def hold_dependants(draft: PlanDraft) -> None:
    if not draft.held and not draft.deferred and not draft.desired.beyond:
        return
    known = -1
    # Each leads to the other: a run that is held ends nothing, and is at work on what was to go
    # after it; what begins on that is held with it.
    while known < len(draft.held):
        _hold_what_needs_the_missing(draft)
        known = len(draft.held)
        hold_volumes_in_use(draft)
    for kind in REFERRED:
        _hold_what_is_referred_to(draft, kind)


def _hold_what_needs_the_missing(draft: PlanDraft) -> None:
    left = {key: one.change for key, one in draft.deferred.items()}
    left.update((key, one.change) for key, one in draft.held.items())
    missing = [key for key in sorted(left) if _is_lacking(draft, left[key])]
    if not missing:
        return
    dependants: dict[ResourceKey, list[ResourceKey]] = {}
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        if declared is not None and _makes(draft, key):
            for needed in _needed(declared):
                dependants.setdefault(needed, []).append(key)
    while missing:
        needed = missing.pop()
        for key in dependants.get(needed, ()):
            change = draft.changes.get(key)
            if change is None or not (
                _is_missing(draft, needed) or begins_on(draft, change, needed)
            ):
                continue
            draft.hold(
                key, HeldBy.DEPENDENCY, *_detail_and_cure(draft, f"it needs {needed}", needed)
            )
            if _is_lacking(draft, change):
                missing.append(key)


def _is_lacking(draft: PlanDraft, change: Change) -> bool:
    """Tell whether what is not changed now is not what others are declared to stand on."""
    return _is_missing(draft, change.key) or is_replaced(change)


def _is_missing(draft: PlanDraft, key: ResourceKey) -> bool:
    # What is not renamed is not there under its new name.
    is_there = key in draft.present and key not in draft.moves.before
    return not is_there and key.kind != "environment"


def _detail_and_cure(draft: PlanDraft, clause: str, key: ResourceKey) -> tuple[str, str]:
    """A detail and its cure: what is held is released, what is left out is asked for."""
    if key in draft.deferred:
        return f"{clause}, and {draft.deferred[key].why}", f"plan {key} as well"
    return f"{clause}, which is blocked", _CURE.format(key=key)


def _makes(draft: PlanDraft, key: ResourceKey) -> bool:
    return draft.changes[key].action in _ACTIONS


def _needed(declared: Declared) -> Iterator[ResourceKey]:
    yield from declared.references
    for name in declared.upstream:
        yield ResourceKey("run", name)


def _hold_what_is_referred_to(draft: PlanDraft, kind: str) -> None:
    leaving = {
        key
        for key, change in draft.changes.items()
        if key.kind == kind and change.action in LEAVING
    }
    for referrer in sorted(_rows_that_stay(draft)) if leaving else ():
        for key in sorted(_referred_to(draft.present[referrer], kind, leaving)):
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"{referrer} refers to it and is not removed",
                _cure_of_reference(draft, referrer, key),
            )
            leaving.discard(key)


def _cure_of_reference(draft: PlanDraft, referrer: ResourceKey, key: ResourceKey) -> str:
    if referrer in draft.deferred:
        return f"plan {referrer} as well"
    if referrer in _declared_without(draft):
        return f"declare {key} again, or remove it from {referrer}"
    return _CURE.format(key=referrer)


def _rows_that_stay(draft: PlanDraft) -> Iterator[ResourceKey]:
    """
    Rows whose last applied document stays in force against the tree.

    What the tree declares and no pass holds cannot refer to what the tree does not declare: the
    checks of `spec` have seen to that. What an earlier run of its name uses is not among that:
    `hold_volumes_in_use` and `hold_forgotten_in_use` see to whoever is at work.
    """
    staying = [one.change for one in draft.held.values()]
    staying += (one.change for one in draft.deferred.values())
    for change in staying:
        key = draft.row_key(change)
        if key in draft.present:
            yield key
    yield from _declared_without(draft)
    if draft.left_alone and not draft.permissions.destroy:
        for key in draft.present:
            if key.parent and ResourceKey(key.kind, key.parent) in draft.left_alone:
                yield key


def _declared_without(draft: PlanDraft) -> Iterator[ResourceKey]:
    """Yield rows of unchanged documents that name what no document declares: no change of theirs is held."""
    if draft.permissions.destroy:
        return
    for key in draft.desired.beyond:
        if key in draft.present and key not in draft.held and key not in draft.deferred:
            yield key


def _referred_to(
    row: LiveResource, kind: str, leaving: AbstractSet[ResourceKey]
) -> set[ResourceKey]:
    """Which of `leaving`, all of one kind, the row's document needs, or what is at work under it."""
    found = set(row.references & leaving)
    # What is at work has its place; of a queue, only its document asks for another one.
    for text in documents_at_work(row) if kind in USED_AT_WORK else ():
        used = references_of(row.key.kind, json.loads(text))
        if kind == "fleet" and not any(one.kind == kind for one in used):
            return set(leaving)  # It may be at work on any of them.
        found.update(used & leaving)
    return found

"""
Which changes a plan was asked for, and which are left for another.

Targets bring along what they need and what is not as declared: a run its fleet, its volumes and the runs it waits for. An
exclusion wins over both. What is left out is shown as deferred, so that a part is never taken for the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from fleetform.model.live import Live
from fleetform.model.plan import Change, Deferred, Scope, Settled
from fleetform.model.selection import Selection, also_by_new_name
from fleetform.model.verbs import ON_HOSTS, REFERRED, REFERRING
from fleetform.plan.draft import PlanDraft, begins_on, is_replaced
from fleetform.spec.desired import Declared, Desired, ResourceKey
from fleetform.spec.names import split_element

__all__ = [
    "defer_the_held",
    "defer_the_rest",
    "failures_in_scope",
    "idle_addresses",
    "known_addresses",
    "scope_warnings",
    "with_new_names",
]


_NAMED_MAX = 5


def idle_addresses(desired: Desired, live: Live, scope: Scope) -> list[tuple[str, str]]:
    """Addresses of a scope that mean nothing, each with what may have been meant, or empty."""
    texts = (*scope.targets, *scope.excludes)
    there = list(_meanable(desired, live)) if texts or scope.replaces else []
    idle = Selection(texts).idle(there) if texts else []
    if scope.replaces:
        # A plan has no change of a single host: it can be exchanged, and is its fleet's else.
        names = tuple(f"host/{one.name}" for one in live.instances)
        if desired.moved:
            names = also_by_new_name(names, desired.moved)
        hosts = (ResourceKey("host", name.removeprefix("host/")) for name in names)
        idle += Selection(scope.replaces).idle([*there, *hosts])
    return idle


def known_addresses(desired: Desired, live: Live) -> list[str]:
    """What an address can mean, sweeps as a whole, by kind and name."""
    found = {f"{key.kind}/{key.parent or key.name}" for key in _meanable(desired, live)}
    return sorted(found)


def _meanable(desired: Desired, live: Live) -> Iterator[ResourceKey]:
    """Everything that an address can mean; what is declared and there comes twice."""
    earlier = (before for before, _ in desired.moved)
    return chain(
        [ResourceKey("environment", desired.environment.name)],
        desired.resources,
        desired.beyond,
        desired.broken,
        earlier,
        live.resources,
    )


def with_new_names(desired: Desired, scope: Scope) -> Scope:
    """The scope, in which what is meant by an earlier name is meant by its new one too."""
    if not desired.moved:
        return scope
    return Scope(
        *(
            also_by_new_name(texts, desired.moved)
            for texts in (scope.targets, scope.excludes, scope.replaces)
        )
    )


def defer_the_rest(draft: PlanDraft) -> None:
    """Take the changes out of the plan that it was not asked for; before any are blocked."""
    if draft.scope.is_whole:
        return
    draft.in_scope = _in_scope(draft)
    for table in (draft.changes, draft.held):
        for key in list(table):
            change = draft.held[key].change if table is draft.held else draft.changes[key]
            if not _is_asked_for(draft, change):
                table.pop(key)
                draft.deferred[key] = Deferred(change, _why(draft, change))


def defer_the_held(draft: PlanDraft) -> None:
    """A change that a later pass blocks and the plan was not asked for is left out as well."""
    if draft.scope.is_whole:
        return
    for key, held in list(draft.held.items()):
        # What the targets need and cannot have is held where they are, and told with them.
        if not _is_asked_for(draft, held.change):
            del draft.held[key]
            draft.deferred[key] = Deferred(held.change, _why(draft, held.change))


def _in_scope(draft: PlanDraft) -> frozenset[ResourceKey] | None:
    """Keys of changes that were asked for or come along; None: all but the excluded."""
    targets, excludes = Selection(draft.scope.targets), Selection(draft.scope.excludes)
    if not targets:
        return None
    changes = {**draft.changes, **{key: one.change for key, one in draft.held.items()}}
    # What is a target and excluded brings nothing along: nobody asked for that alone.
    asked = {
        key
        for key, one in changes.items()
        if _selects(targets, one) and not _selects(excludes, one)
    }
    # Targets that differ in nothing may still wait for something that does.
    asked.update(
        key
        for key in targets.chosen(draft.wanted)
        if key not in changes and not excludes.selects(key, key.parent)
    )
    waiting = sorted(asked)
    reached = set(waiting)
    fleets = _fleets_to_choose_from(draft)
    while waiting:
        for needed in _needs(draft, waiting.pop(), changes, fleets):
            if needed not in reached and not _selects(excludes, changes[needed]):
                reached.add(needed)
                waiting.append(needed)
                draft.brought.setdefault(needed, None)
    return frozenset(reached)


def _needs(
    draft: PlanDraft,
    key: ResourceKey,
    changes: dict[ResourceKey, Change],
    fleets: Iterable[ResourceKey],
) -> Iterable[ResourceKey]:
    """What must be changed before this can be: not there, not yet of that name, or recreated."""
    declared = draft.wanted.get(key)
    if declared is None:
        return _users(draft, key, changes)
    needed = [*declared.references, *(ResourceKey("run", name) for name in declared.upstream)]
    if key.kind == "run" and not any(one.kind in ON_HOSTS for one in _grounds(draft, declared)):
        needed += fleets
    return [
        one
        for one in needed
        if one in changes
        and (
            one not in draft.present
            or changes[one].moved_from
            or (
                is_replaced(changes[one]) and key in changes and begins_on(draft, changes[key], one)
            )
        )
    ]


def _grounds(draft: PlanDraft, declared: Declared) -> Iterable[ResourceKey]:
    """What a run refers to, and what its queue does: one that names no fleet leads to all."""
    for one in declared.references:
        yield one
        queue = draft.wanted.get(one) if one.kind == "queue" else None
        yield from queue.references if queue is not None else ()


def _fleets_to_choose_from(draft: PlanDraft) -> list[ResourceKey]:
    """For a run that may go anywhere, while there is nowhere to go: whatever is declared."""
    if any(key.kind == "fleet" for key in draft.present):
        return []
    return sorted(key for key in draft.wanted if key.kind == "fleet")


def _users(
    draft: PlanDraft, key: ResourceKey, changes: dict[ResourceKey, Change]
) -> list[ResourceKey]:
    """Of something that goes: what goes too and has to be ended first."""
    if key.kind not in REFERRED or key not in changes:
        return []
    return [
        one
        for one in changes
        if one in draft.present
        and one not in draft.wanted
        and one.kind in REFERRING
        and key in draft.present[one].references
    ]


def _is_asked_for(draft: PlanDraft, change: Change) -> bool:
    if _selects(Selection(draft.scope.excludes), change):
        return False
    if draft.in_scope is None:
        return True
    return change.key in draft.in_scope or _selects(Selection(draft.scope.targets), change)


def _selects(selection: Selection, change: Change) -> bool:
    """A pair is meant by either of its two elements, and what is renamed by either name."""
    if selection.selects(change.key, change.parent):
        return True
    names = [(change.replaces, change.parent)] if change.replaces else []
    if change.moved_from:
        names.append((change.moved_from, split_element(change.moved_from)[0]))
    return any(
        selection.selects(ResourceKey(change.key.kind, name), parent) for name, parent in names
    )


def scope_warnings(draft: PlanDraft) -> tuple[str, ...]:
    """What came along without being named, in one sentence."""
    asked = Selection(draft.scope.targets)
    brought = sorted(
        key
        for key in draft.brought
        if key in draft.changes and not _selects(asked, draft.changes[key])
    )
    if not brought:
        return ()
    names = ", ".join(str(key) for key in brought[:_NAMED_MAX])
    more = f" and {len(brought) - _NAMED_MAX} more" if len(brought) > _NAMED_MAX else ""
    verb, them = ("are", "them") if len(brought) > 1 else ("is", "it")
    return (f"{names}{more} {verb} planned too, because the targets need {them}.",)


def failures_in_scope(draft: PlanDraft, settled: tuple[Settled, ...]) -> tuple[Settled, ...]:
    """Of the runs that ended earlier: those that the scope asks about."""
    if draft.scope.is_whole:
        return settled
    targets, excludes = Selection(draft.scope.targets), Selection(draft.scope.excludes)
    return tuple(
        one
        for one in settled
        if (not targets or targets.selects(one.key, one.key.parent))
        and not excludes.selects(one.key, one.key.parent)
    )


def _why(draft: PlanDraft, change: Change) -> str:
    if _selects(Selection(draft.scope.excludes), change):
        return "excluded by `--exclude`"
    return "not a `--target`"

"""
Which steps wait for which.

What is made comes after what it refers to: fleets, volumes, runs. What goes, goes the other
way: runs are stopped, then volumes dropped, then fleets removed. Runs do not wait for the runs
they depend on: that is `lifecycle`'s, and a sweep that waits for a sweep would need the product
of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from operator import is_

from fleetform.model.live import references_of
from fleetform.model.plan import Step
from fleetform.model.verbs import (
    CARRIES_DOCUMENT,
    ENDS,
    ON_HOSTS,
    REFERRED,
    REFERRING,
    TAKES_PATH,
    Verb,
    verbs_of,
)
from fleetform.plan.blockers.places import places_freed
from fleetform.plan.draft import PlanDraft
from fleetform.plan.phase import documents_of
from fleetform.spec.desired import ResourceKey

# Updates of a fleet too: a run that is only possible on the new capacity would else be judged
# by the old, and end at once. Updates of a volume may create its directory again.
_PROVIDES = verbs_of(*REFERRED) & CARRIES_DOCUMENT | {Verb.RESOURCE_MOVE}
_USES = verbs_of(*REFERRING) & CARRIES_DOCUMENT
# Resources that runs use: each is removed after the runs that use it have ended.
_ENDS = verbs_of(*ON_HOSTS) & ENDS | {Verb.VOLUME_WITHDRAW}

_Needs = dict[ResourceKey, list[str]]


def order_steps(draft: PlanDraft) -> None:
    """Add to each step the keys of the steps that its references ask for."""
    made = _steps_by_resource(draft, _PROVIDES)
    ended = _what_ends(draft)
    if not made and not ended:
        return
    # Where nothing is made free, nobody waits for that.
    freed = places_freed(draft) if ended else {}
    asked = _Asked(made)
    default = _default_queue(draft, made)
    for key, change in draft.changes.items():
        old = change.steps
        steps = tuple([_linked(draft, key, step, asked, ended, freed) for step in old])
        if default and key.kind == "run":
            steps = tuple([_behind(draft, key, step, default) for step in steps])
        if not all(map(is_, steps, old)):
            draft.changes[key] = replace(change, steps=steps)


def _default_queue(draft: PlanDraft, made: Mapping[ResourceKey, str]) -> str:
    """Return the step that sets the default queue, or nothing."""
    return next(
        (
            step
            for key, step in sorted(made.items())
            if key.kind == "queue" and draft.wanted[key].document.get("default")
        ),
        "",
    )


def _behind(draft: PlanDraft, key: ResourceKey, step: Step, needed: str) -> Step:
    """
    Have a run that names no queue begin to wait when the default queue is there.

    Otherwise it could be placed on another fleet between the two steps.
    """
    declared = draft.wanted.get(key)
    if step.verb not in _USES or declared is None or "queue" in declared.document:
        return step
    if _ends(draft, key, step.verb) or needed in step.needs:
        return step
    return Step(step.key, step.verb, step.resource, (*step.needs, needed), step.arguments)


class _Asked(dict[tuple[ResourceKey, ...], tuple[str, ...]]):
    """The steps that create what a document refers to, sorted; most documents refer to the same."""

    def __init__(self, made: Mapping[ResourceKey, str]) -> None:
        self._made = made

    def __missing__(self, references: tuple[ResourceKey, ...]) -> tuple[str, ...]:
        made = self._made
        found = self[references] = tuple(sorted({made[one] for one in references if one in made}))
        return found


def _linked(
    draft: PlanDraft,
    key: ResourceKey,
    step: Step,
    asked: _Asked,
    ended: _Needs,
    freed: Mapping[ResourceKey, tuple[str, ...]],
) -> Step:
    verb = step.verb
    needs: tuple[str, ...] = ()
    if verb in _USES and (declared := draft.wanted.get(key)) is not None:
        needs = () if _ends(draft, key, verb) else asked[declared.references]
    if ended:
        others = set(needs)
        if verb in _ENDS:
            others.update(ended.get(step.resource, ()))
        if verb == Verb.FLEET_UPDATE:
            # A host that leaves both is asked about the data before it goes.
            others.update(_withdrawals(draft, key.name))
        if verb in TAKES_PATH:
            others.update(freed.get(step.resource, ()))
        needs = tuple(sorted(others))
    if step.needs or step.key in needs:
        needs = tuple([one for one in needs if one not in step.needs and one != step.key])
    if not needs:
        return step
    # One tuple for all who need the same, where they need nothing else.
    needs = (*step.needs, *needs) if step.needs else needs
    return Step(step.key, verb, step.resource, needs, step.arguments)


def _withdrawals(draft: PlanDraft, fleet: str) -> list[str]:
    return [
        step.key
        for change in draft.changes.values()
        for step in change.steps
        if step.verb == Verb.VOLUME_WITHDRAW and step.arguments["fleet"] == fleet
    ]


def _ends(draft: PlanDraft, key: ResourceKey, verb: str) -> bool:
    """Tell whether nothing begins with this update, for the run is stopped behind it."""
    # What the run uses may have to end first, before it is made anew: it would wait for itself.
    if verb != Verb.RUN_UPDATE:
        return False
    return any(step.verb == Verb.RUN_STOP for step in draft.changes[key].steps)


def _steps_by_resource(draft: PlanDraft, verbs: frozenset[str]) -> dict[ResourceKey, str]:
    return {
        step.resource: step.key
        for change in draft.changes.values()
        for step in change.steps
        if step.verb in verbs
    }


def _what_ends(draft: PlanDraft) -> _Needs:
    """For each resource on hosts that goes: the steps that end what uses it."""
    going = _steps_by_resource(draft, _ENDS)
    needs: _Needs = {key: [] for key in going}
    if not needs:
        return needs
    for key, step_key in going.items():
        # A tombstone is let go as well, and uses nothing.
        row = draft.present.get(key)
        for resource in row.references if row is not None else ():
            if resource in needs:
                needs[resource].append(step_key)
    fleets = {key for key in going if key.kind == "fleet"}
    for key, step_key in _steps_by_resource(draft, frozenset({Verb.RUN_STOP})).items():
        used: set[ResourceKey] = set()
        for text in documents_of(draft.live.resources[key]):
            named = references_of(key.kind, json.loads(text))
            used |= named
            if not any(one.kind == "fleet" for one in named):
                used |= fleets
        for resource in used:
            if resource in needs:
                needs[resource].append(step_key)
    return needs

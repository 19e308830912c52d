"""
Which hosts a fleet has after a change if they follow demand: those of now, within its limits.

The step has the limits. The hosts that it lists are those at the time of the plan, for its costs and for people:
until it is applied, demand may bring in or release others, and the ledger keeps what there is then.
"""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.instance import InstanceState
from fleetform.model.plan import Step
from fleetform.model.rollout import SURGE
from fleetform.model.scaling import numbers_kept, places_kept
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft

__all__ = ["keep_scaled_hosts"]

_GONE = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})


def keep_scaled_hosts(draft: PlanDraft) -> None:
    """List the hosts that fleets with `scaling` have by now in their steps, in place of their first ones."""
    for key in sorted(draft.changes):
        change = draft.changes[key]
        if key.kind == "fleet" and any(map(_is_update, change.steps)):
            earlier = change.moved_from or key.name
            steps = tuple(
                _kept(draft, step, earlier) if _is_update(step) else step for step in change.steps
            )
            draft.changes[key] = replace(change, steps=steps)


def _is_update(step: Step) -> bool:
    return step.verb == Verb.FLEET_UPDATE and "scaling" in step.arguments


def _kept(draft: PlanDraft, step: Step, fleet: str) -> Step:
    busy = {host for one in draft.live.work if one.fleet == fleet for host in one.hosts}
    ended = step.arguments.get("ended", ())
    there = [
        one
        for one in draft.live.instances
        if one.fleet == fleet and one.state not in _GONE and one.uid not in ended
    ]
    scaling = step.arguments["scaling"]
    numbers = numbers_kept(
        {one.number % SURGE for one in there},
        {one.number % SURGE for one in there if one.name in busy},
        least=scaling["min"],
        most=scaling["max"],
    )
    instances = places_kept(step.resource.name, scaling, numbers)
    return replace(step, arguments={**step.arguments, "instances": instances})

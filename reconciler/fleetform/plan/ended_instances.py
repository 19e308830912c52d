"""
Instances of clouds that certainly no longer exist: a change of their fleet gives up their rows, and others take their places.

An instance that has ended never returns, so a plan counts on what an earlier look has found without asking its cloud again.
Nothing is destroyed by it: what ran there has ended, and its replacement has another uid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.model.plan import Change
from fleetform.model.verbs import Verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetform.model.drift import Drift
    from fleetform.model.live import Live
    from fleetform.plan.draft import PlanDraft

__all__ = ["ended_instances", "ended_since_a_look", "give_up_ended"]


def ended_since_a_look(live: Live) -> Iterator[Drift]:
    """Yield what earlier looks have found of instances that the ledger still has, and this one has not."""
    now = {(one.resource, one.path) for one in live.drift}
    for recorded in live.recorded_drift:
        drift = recorded.drift
        if recorded.place not in now and ended_instances(live, drift.resource.name, (drift,)):
            yield drift


def ended_instances(live: Live, fleet: str, drifts: tuple[Drift, ...]) -> dict[str, str]:
    """Return why instances of a fleet no longer exist, by uid; `drifts` are those of the fleet."""
    # By the id of the cloud: its place may have another instance by now.
    why = {one.expected: one.by for one in drifts if one.field == "host"}
    return {
        one.uid: why[one.endpoint["id"]]
        for one in live.instances
        if one.fleet == fleet and one.is_bought and one.endpoint.get("id") in why
    }


def give_up_ended(draft: PlanDraft) -> None:
    """Have each change of a fleet that keeps its hosts replace those that have ended."""
    drifts = (*draft.live.drift, *ended_since_a_look(draft.live))
    for key in [one for one in draft.changes if one.kind == "fleet"]:
        ended = ended_instances(
            draft.live,
            draft.row_key(draft.changes[key]).name,
            tuple(one for one in drifts if one.resource == key),
        )
        if ended:
            draft.changes[key] = _with_ended(draft.changes[key], ended)


def _with_ended(change: Change, ended: dict[str, str]) -> Change:
    steps = tuple(
        replace(step, arguments={**step.arguments, "ended": ended})
        if step.verb == Verb.FLEET_UPDATE
        else step
        for step in change.steps
    )
    return replace(change, steps=steps)

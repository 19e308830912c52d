"""
Which hosts are removed with a fleet, and how many: those that exist, which may be more than are declared.

A host that leaves exists until its last job has ended, and the loss of one that does not exist yet is no loss. A kind
sees the row of a fleet and not its hosts, so it states how many were declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from fleetform.model.instance import CLOUDS
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, HeldBy
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft, Proposal
from fleetform.plan.impact import hosts_ended
from fleetform.plan.kinds.fleet import (
    hastens,
    hosts_impact,
    lost_hosts,
    nodes_wanted,
    propose_adopt_hosts,
    recreates,
    recreates_at_once,
    template_of,
    was_made,
)
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.names import natural_order

__all__ = [
    "adoption_of",
    "count_hosts",
    "ends_unfinished",
    "hasten_exchanges",
    "hold_silent_hosts",
    "hold_taken_names",
    "hosts_brought_in",
    "may_be_there",
]


def hasten_exchanges(draft: PlanDraft) -> None:
    """
    State what ends with hosts whose rollout is under way and no longer waits for their jobs.

    The document says how the next rollout goes, and the one under way follows it as well. A fleet that was never created
    completely has no document, and may have hosts all the same.
    """
    there = {*draft.live.exchanging, *(one.fleet for one in draft.live.instances)}
    for key in sorted(ResourceKey("fleet", name) for name in there):
        change, declared = draft.changes.get(key), draft.wanted.get(key)
        if change is None or declared is None or change.action is not Action.UPDATE:
            continue
        row = draft.present.get(key)
        if row is None:
            continue
        before = row.parsed
        is_hastened = key.name in draft.live.exchanging and hastens(before, declared.document)
        if is_hastened or ends_unfinished(draft, declared, row):
            draft.hastened.add(key)
            draft.changes[key] = replace(
                change,
                destructive=True,
                at_stake=hosts_impact(Action.UPDATE, nodes_wanted(before or declared.document)),
            )


def ends_unfinished(draft: PlanDraft, declared: Declared, row: LiveResource) -> bool:
    """Tell whether hosts end that are there of a fleet which was never made in whole."""
    if was_made(row) or not recreates_at_once(declared.document):
        return False
    mine = {"", template_of(declared.document)}
    return any(
        # One that has never answered becomes what is wanted.
        one.fleet == declared.key.name and one.install_id and one.template_digest not in mine
        for one in draft.live.instances
    )


def count_hosts(draft: PlanDraft) -> None:
    """Say of each change that takes all hosts of a fleet how many those are, held ones too."""
    if not draft.live.instances:
        return
    there = Counter(one.fleet for one in draft.live.instances)
    for key, change in draft.changes.items():
        if key.kind == "fleet":
            draft.changes[key] = _with_count(draft, change, there)
    for key, held in draft.held.items():
        if key.kind == "fleet":
            draft.held[key] = replace(held, change=_with_count(draft, held.change, there))


def _with_count(draft: PlanDraft, change: Change, there: Mapping[str, int]) -> Change:
    count = there.get(change.key.name)
    takes_all = change.destructive and not hosts_ended(draft, change)
    # Where single hosts give way, or are lost, they are named and not counted.
    if not change.at_stake or not count or not takes_all:
        return change
    return replace(change, at_stake=hosts_impact(change.action, count))


# Hosts that do not answer, of a fleet that is to be removed.
# Their agents and jobs cannot be ended, and nobody else knows of them once the fleet has gone.


_WHY_MAX = 3
"""Hosts whose reasons a blocked removal states; the plan names all in its help."""


def hold_silent_hosts(draft: PlanDraft) -> None:
    """Block the removal of a fleet until each silent host answers, or is declared lost."""
    for key in sorted(draft.changes) if draft.live.instances else ():
        change = draft.changes[key]
        if key.kind != "fleet" or all(step.verb != Verb.FLEET_REMOVE for step in change.steps):
            continue
        fleet = draft.row_key(change).name
        lost = _lost_hosts(draft, key, fleet)
        why = {
            one.name: one.message or "it does not answer"
            for one in draft.live.instances
            # An instance of a cloud is deleted with what runs there.
            if one.fleet == fleet and one.is_silent and not one.is_bought and one.name not in lost
        }
        silent = sorted(why, key=natural_order)
        if lost:
            draft.changes[key] = _with_lost(change, lost)
        if silent:
            reasons = ", and ".join(
                f"those on host {name}: {why[name]}" for name in silent[:_WHY_MAX]
            )
            more = len(silent) - _WHY_MAX
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"agents and jobs cannot be ended: {reasons}{f', and those on {more} more' if more > 0 else ''}",
                f"make each host reachable (`fleetform fleet check {fleet}`); if one never returns:"
                f" {_way_out(draft, silent)}",
            )


def _way_out(draft: PlanDraft, silent: list[str]) -> str:
    if draft.permissions.destroy:
        return f"`fleetform destroy {' '.join(f'--lost {name}' for name in silent)}`"
    return (
        f"set `lost: REASON` at {', '.join(silent)} in its fleet, apply, and remove the fleet then"
    )


def _lost_hosts(draft: PlanDraft, key: ResourceKey, fleet: str) -> dict[str, str]:
    """Say of hosts of a fleet why they are lost: by the command, or by the document that it has now."""
    declared = draft.desired.resources.get(key)
    documented = lost_hosts(declared.document) if declared is not None else {}
    there = {one.name for one in draft.live.instances if one.fleet == fleet}
    given_up = dict.fromkeys(draft.live.given_up, "declared with `--lost`")
    return {name: why for name, why in {**given_up, **documented}.items() if name in there}


def _with_lost(change: Change, lost: Mapping[str, str]) -> Change:
    steps = tuple(
        replace(step, arguments={**step.arguments, "lost": dict(lost)})
        if step.verb == Verb.FLEET_REMOVE
        else step
        for step in change.steps
    )
    return replace(change, steps=steps)


# Released hosts, and fleets that are declared where they were.
# They are up, under the names that they had, with the jobs that run on them. The machine refuses a fleet that would create
# other hosts under those names, so the plan blocks it and says how to adopt them. A fleet whose creation has begun adopts
# them in the same way.


def adoption_of(draft: PlanDraft, declared: Declared, row: LiveResource) -> Proposal | None:
    """Propose what an entry of `import:` means for a fleet that exists; None where it means nothing."""
    if declared.key.kind != "fleet" or declared.key not in draft.desired.imports:
        return None
    if was_made(row) and recreates(row.parsed, declared.document):
        return None
    if ends_unfinished(draft, declared, row):
        return None
    proposal = propose_adopt_hosts(declared, row)
    wanted = {one["name"] for one in proposal.change.steps[0].arguments["instances"]}
    return proposal if _in_the_way(draft, declared.key, wanted) else None


def may_be_there(draft: PlanDraft, declared: Declared) -> bool:
    """Tell whether what an entry of `import:` names may exist; the ledger knows it of hosts."""
    return declared.key.kind != "fleet" or bool(draft.live.released_hosts)


def hold_taken_names(draft: PlanDraft) -> None:
    for key in sorted(draft.changes) if draft.live.released_host_names else ():
        if key.kind != "fleet":
            continue
        wanted = {
            one["name"]
            for step in draft.changes[key].steps
            if step.verb in {Verb.FLEET_MAKE, Verb.FLEET_UPDATE}
            for one in step.arguments["instances"]
        }
        names = sorted(_in_the_way(draft, key, wanted))
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"host {names[0]}{more} was released and still runs under that name",
                f"write `import: [{key}]` in environment.yaml to adopt it with the jobs that run there",
            )


def _in_the_way(draft: PlanDraft, fleet: ResourceKey, wanted: set[str]) -> set[str]:
    """Return names of released hosts that a fleet wants, and for which it has no host of its own that ever answered."""
    own = {one.name for one in draft.live.instances if one.fleet == fleet.name and one.install_id}
    return (wanted & draft.live.released_host_names) - own


# Hosts that a change brings in.


def hosts_brought_in(draft: PlanDraft, change: Change, *, bought: bool) -> list[str]:
    """Name the hosts that the change of a fleet brings in: instances of clouds, or other machines that exist."""
    goes = any(step.verb == Verb.FLEET_REMOVE for step in change.steps)
    ended = {uid for step in change.steps for uid in step.arguments.get("ended", ())}
    known = {
        one.name
        for one in draft.live.instances
        if one.fleet == change.key.name
        and not goes
        and one.uid not in ended
        and not (one.is_joining and not one.is_created)
    }
    names = [
        place["name"]
        for step in change.steps
        for place in step.arguments.get("instances", ())
        if "endpoint" in place
        and place["name"] not in known
        and (place["provider"] in CLOUDS) is bought
    ]
    return sorted(names, key=natural_order)

"""
Which hosts go with a fleet, and how many: those that are there, which may be more than are declared.

Hosts that leave are there until their last job has ended, and one that is not there yet is no
loss. A kind's logic has the row of a fleet and not its hosts, so it says how many were declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, HeldBy
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft, Proposal
from fleetform.plan.impact import hosts_ended
from fleetform.plan.kinds.fleet import (
    hastens,
    hosts_at_stake,
    lost_hosts,
    nodes_wanted,
    propose_taking_in,
    recreates,
    template_of,
    waits_for_nobody,
    was_made,
)
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.names import natural_order

__all__ = [
    "count_hosts",
    "ends_unfinished",
    "hasten_exchanges",
    "hold_silent_hosts",
    "hold_taken_names",
    "may_be_there",
    "taken_in",
]


def hasten_exchanges(draft: PlanDraft) -> None:
    """
    Say what ends with hosts that are being exchanged when their fleet shall wait for nobody.

    The document alone says how the next exchange goes; the one under way follows it as well. Of a
    fleet that was never made in whole there is none, and its hosts are there all the same.
    """
    there = draft.live.exchanging | {one.fleet for one in draft.live.instances}
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
                at_stake=hosts_at_stake(Action.UPDATE, nodes_wanted(before or declared.document)),
            )


def ends_unfinished(draft: PlanDraft, declared: Declared, row: LiveResource) -> bool:
    """Tell whether hosts end that are there of a fleet which was never made in whole."""
    if was_made(row) or not waits_for_nobody(declared.document):
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
    return replace(change, at_stake=hosts_at_stake(change.action, count))


# Hosts that do not answer, of a fleet that is to be removed.
# Their agents and jobs cannot be ended, and nobody else knows of them once the fleet has gone.


def hold_silent_hosts(draft: PlanDraft) -> None:
    """Block the removal of a fleet until each silent host answers, or is declared lost."""
    for key in sorted(draft.changes) if draft.live.instances else ():
        change = draft.changes[key]
        if key.kind != "fleet" or all(step.verb != Verb.FLEET_REMOVE for step in change.steps):
            continue
        fleet = draft.row_key(change).name
        lost = _lost_hosts(draft, key, fleet)
        silent = sorted(
            (
                one.name
                for one in draft.live.instances
                if one.fleet == fleet and one.is_silent and one.name not in lost
            ),
            key=natural_order,
        )
        if lost:
            draft.changes[key] = _with_lost(change, lost)
        if silent:
            names = ", ".join(silent)
            answer = "does not answer" if len(silent) == 1 else "do not answer"
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"host {names} {answer}, so the agent and the jobs there cannot be ended",
                f"start it again; if it never returns: {_way_out(draft, silent)}",
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


# Hosts that were let go, and fleets that are declared where they were.
# They are up, under the names that they had, with whatever runs on them. A fleet that would make
# others under those names is refused by the machine they are on, so the plan holds it and says how
# they are taken back. A fleet that somebody began to make so takes them in with the same words.


def taken_in(draft: PlanDraft, declared: Declared, row: LiveResource) -> Proposal | None:
    """What an entry of `import:` means for a fleet that is there; None where it means nothing."""
    if declared.key.kind != "fleet" or declared.key not in draft.desired.imports:
        return None
    if was_made(row) and recreates(row.parsed, declared.document):
        return None
    if ends_unfinished(draft, declared, row):
        return None
    proposal = propose_taking_in(declared, row)
    wanted = {one["name"] for one in proposal.change.steps[0].arguments["instances"]}
    return proposal if _in_the_way(draft, declared.key, wanted) else None


def may_be_there(draft: PlanDraft, declared: Declared) -> bool:
    """Tell whether there can be what an entry of `import:` names; of hosts the ledger knows it."""
    return declared.key.kind != "fleet" or bool(draft.live.let_go)


def hold_taken_names(draft: PlanDraft) -> None:
    for key in sorted(draft.changes) if draft.live.let_go_names else ():
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
    """Names of let-go hosts that a fleet wants, and has no host of its own with that ever answered."""
    own = {one.name for one in draft.live.instances if one.fleet == fleet.name and one.install_id}
    return (wanted & draft.live.let_go_names) - own

"""
Which running work a change would end: runs, jobs and GPUs.

For a run that is its own work; for a fleet all that is at work on it; for a volume all that has it
mounted. How long that has been going is the annex's to say: time is no part of what was decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fleetform.model.live import LiveResource, Work, changed_rows
from fleetform.model.plan import Action, Change, Held, HeldBy, Impact
from fleetform.model.rollout import divides_otherwise
from fleetform.model.verbs import Verb
from fleetform.model.volume import mounted_volumes
from fleetform.plan.draft import PlanDraft
from fleetform.plan.phase import Execution, documents_at_work, executions, is_at_work
from fleetform.spec.desired import ResourceKey

__all__ = [
    "User",
    "add_stakes",
    "ends_with",
    "hold_while_used",
    "hosts_ended",
    "users",
    "work_impacted",
]


def add_stakes(draft: PlanDraft) -> None:
    """Say of each change that would end running work how much, also of those that are held."""
    for key, change in draft.changes.items():
        if _ends_work(change):
            draft.changes[key] = _staked(draft, change)
    for key, held in draft.held.items():
        if _would_end_work(held):
            draft.held[key] = replace(held, change=_staked(draft, held.change))


def work_impacted(draft: PlanDraft, change: Change) -> tuple[Work, ...]:
    """What would end of what is at work now, by run and fleet."""
    if change.key.kind == "fleet":
        return tuple(one for one in draft.live.work if ends_with(draft, change, one))
    if change.key.kind == "volume":
        users = _users(draft, change.key.name)
        return tuple(one for one in draft.live.work if one.run in users)
    if change.key.kind != "run":
        return ()
    row = draft.live.resources.get(draft.row_key(change))
    if row is None or not is_at_work(row):
        return ()
    found = tuple(one for one in draft.live.work if one.run == row.key.name)
    return found or (_without_place(row),)


def ends_with(draft: PlanDraft, change: Change, work: Work) -> bool:
    """
    Tell whether work on a fleet would end by what is done to it, if that is destructive at all.

    Where single hosts give way to others, it is what is on those.
    """
    if work.fleet != change.key.name:
        return False
    hosts = hosts_ended(draft, change)
    return not hosts or not work.hosts or not hosts.isdisjoint(work.hosts)


def hosts_ended(draft: PlanDraft, change: Change) -> frozenset[str]:
    """Name the hosts of a fleet that give way to others; empty where it is all of them, or none."""
    if change.key in draft.hastened or any(map(divides_otherwise, change.fields)):
        return frozenset()
    return frozenset(
        host
        for step in change.steps
        for argument in ("exchange", "unfit")
        for host in step.arguments.get(argument, ())
    )


def _would_end_work(held: Held) -> bool:
    # A restart that is held has no step that ends anything yet. What is let go ends nothing.
    is_restart = held.by is HeldBy.RUNNING_WORK and held.change.action is not Action.FORGET
    return is_restart or _ends_work(held.change)


def _ends_work(change: Change) -> bool:
    return change.destructive or any(step.verb == Verb.RUN_STOP for step in change.steps)


def _staked(draft: PlanDraft, change: Change) -> Change:
    work = work_impacted(draft, change)
    return replace(change, stake=_sum(work)) if work else change


def _sum(work: Iterable[Work]) -> Impact:
    listed = list(work)
    return Impact(
        runs=tuple(sorted({one.run for one in listed})),
        jobs=sum(one.jobs for one in listed),
        gpus=sum(one.gpus for one in listed),
    )


def _without_place(row: LiveResource) -> Work:
    """A run that is at work by its state, and of which no allocation is known."""
    assert row.run is not None
    return Work(row.key.name, "", 0, row.run.gpus, row.run.started_at_ms)


def _users(draft: PlanDraft, volume: str) -> frozenset[str]:
    """Names of the runs at work that have the volume mounted."""
    return frozenset(
        key.name
        for key, row in changed_rows(draft.live.resources).items()
        if key.kind == "run"
        and any(volume in mounted_volumes(one) for one in documents_at_work(row))
    )


# Who is at work on what is to go: on a volume's data, or on the hosts of a fleet that is forgotten.
# Told from every row that may have something at work, tombstones among them: what has left the tree
# goes on until its end. Who is on its way there already is waited for, and apply follows the plan; for
# all others somebody has to decide first.

User = tuple[LiveResource, Execution]
"""The row of a name, and what is at work under it: itself, or the run that it waits for."""


def users(draft: PlanDraft) -> Iterator[User]:
    """Find all that is at work, in order of name."""
    rows = changed_rows(draft.live.resources)
    for key in sorted(rows):
        if key.kind == "run":
            yield from ((rows[key], one) for one in executions(rows[key]))


def hold_while_used(
    draft: PlanDraft, key: ResourceKey, here: Sequence[User], clauses: tuple[str, str]
) -> None:
    """
    Block a change until no run uses what it removes.

    Args:
        draft: The plan so far.
        key: That of the change.
        here: Who is at work there, one at least, in order of name.
        clauses: How it uses that, as a clause behind one name and behind several.
    """
    names = list(dict.fromkeys(str(row.key) for row, _ in here))
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    clause = f"{names[0]}{others} {clauses[1] if others else clauses[0]}"
    if all(one.ending for _, one in here):
        draft.hold(
            key,
            HeldBy.ENDING,
            f"{clause}, and {'are' if others else 'is'} still ending",
            f"`fleetform apply` waits until {'they have' if others else 'it has'} ended",
            waits_for={one.uid: row.key.name for row, one in here},
        )
        return
    when = "they have" if others else "it has"
    draft.hold(key, HeldBy.RUNNING_WORK, clause, f"plan again once {when} ended")

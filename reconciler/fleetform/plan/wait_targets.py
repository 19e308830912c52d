"""What an apply of a plan follows to its end, unless it is detached: runs and ends of runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fleetform.model.plan import Held, HeldBy, Plan
from fleetform.model.run import RunUid
from fleetform.model.selection import Selection
from fleetform.model.verbs import Verb
from fleetform.spec.desired import ResourceKey

__all__ = ["ended_besides", "ending", "waited_for"]


def waited_for(plan: Plan, entered: Collection[str] = ()) -> tuple[str, ...]:
    """
    Name the runs that an apply of this plan follows to their end.

    They are the runs that it starts or changes, and of the runs at work those that `--target` or
    `--replace` names. With nothing to carry out and nothing blocked it follows all that is at work: so a
    second apply goes on where the first was interrupted. Other runs may take days, and a
    controller drives them.

    Args:
        plan: As it is carried out.
        entered: Runs of an earlier plan of the same apply, which another process has entered.
    """
    submitted = [
        change.key.name
        for change in plan.changes
        if change.key.kind == "run" and any(step.verb != Verb.RUN_ARCHIVE for step in change.steps)
    ]
    meant = Selection((*plan.scope.targets, *plan.scope.replaces))
    follows_all = not meant and plan.is_empty and not plan.held
    progressing = [
        key.name
        for key in plan.progressing
        if key.kind == "run"
        and (follows_all or key.name in entered or (meant and meant.selects(key)))
    ]
    return tuple(dict.fromkeys((*submitted, *progressing)))


def ending(plan: Plan) -> dict[RunUid, ResourceKey]:
    """
    What is on its way to its end and holds a change until then: its own key, by run.

    Of one name there may be two: the one that the tree last meant, and the one it waited for.
    """
    return {
        RunUid(uid): key
        for held in plan.held
        if held.by is HeldBy.ENDING
        for uid, key in _ending(held)
        if uid
    }


def _ending(held: Held) -> Iterator[tuple[str, ResourceKey]]:
    for uid, name in held.awaited.items():
        yield uid, ResourceKey("run", name)
    if held.change.key.kind == "run":
        yield held.change.uid, held.change.key
        for step in held.change.steps:
            yield step.arguments.get("after_uid", ""), held.change.key


def ended_besides(plan: Plan) -> dict[RunUid, ResourceKey]:
    """
    What this plan asks to end, by run: no outcome of a name tells of its end.

    The name has left the tree, is another run's by now, or is that of what waits for the end.
    """
    return {
        RunUid(uid): step.resource
        for change in plan.changes
        for step in change.steps
        if step.verb == Verb.RUN_STOP
        for uid in (change.uid, step.arguments.get("earlier", ""))
        if uid
    }

"""
What was approved with a plan, where another is made of the same tree later.

Whoever said yes has seen a plan. Others may be faster, and runs come to their ends meanwhile, so
what is carried out may be a newer plan: then it may do less than was shown, and nothing else.
Here that is decided; who plans again, and how often, is the command's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.model.plan import HeldBy
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from fleetform.model.plan import Change, Plan

__all__ = ["brings_about", "does_the_same", "following", "is_within", "runs_ended_by"]

_FOLLOWS = frozenset({HeldBy.ENDING, HeldBy.DEPENDENCY})
"""What holds a change that goes on by itself: a run's end, and what waits for that."""


def is_within(newer: Plan, approved: Plan, *, unasked: bool = False) -> bool:
    """
    Tell whether all that a plan does was approved with an earlier one, to the last value.

    What was held until a run has ended, or for what waited for that, was approved with it: the
    plan has shown it, and said that it follows. Where nobody was asked (`unasked`), whose work may
    end was said by permissions alone, and the newer plan was made with the same. Whoever removes
    everything has agreed to the end of all that was listed, also of what was waiting then.
    """
    if approved.destroys:
        return newer.destroys and _removes_nothing_else(newer, approved)
    known = {(change.key, change.action): change for change in approved.changes}
    followers = {held.change.key: held.change for held in approved.held if held.by in _FOLLOWS}
    return all(
        does_the_same(change, known.get((change.key, change.action)), unasked=unasked)
        or brings_about(change, followers.get(change.key))
        for change in newer.changes
    )


def does_the_same(change: Change, approved: Change | None, *, unasked: bool = False) -> bool:
    """
    Tell whether a change has the steps of one that was approved, and ends no more than that.

    False where none was (None). Whoever agreed to the ends of some runs agreed to no other: one
    may have begun since. Who was `unasked` agreed to whatever is permitted.
    """
    if approved is None or change.destructive > approved.destructive:
        return False
    if not unasked and not runs_ended_by(change) <= runs_ended_by(approved):
        return False
    done = [(step.verb, step.resource, step.arguments) for step in change.steps]
    return done == [(step.verb, step.resource, step.arguments) for step in approved.steps]


def _removes_nothing_else(newer: Plan, approved: Plan) -> bool:
    """
    Tell whether a plan that removes everything does so with nothing but what was listed.

    How a run goes is another matter: it may have begun meanwhile, or ended. What becomes of a host
    or of data is not, nor may it end runs that were not listed.
    """
    listed = {change.key: change for change in approved.changes}
    followers = {held.change.key: held.change for held in approved.held if held.by in _FOLLOWS}
    return all(
        brings_about(change, followers.get(change.key))
        or (
            (before := listed.get(change.key)) is not None
            and before.uid == change.uid
            and all(ResourceKey("run", run) in listed for run in runs_ended_by(change))
            and (change.key.kind == "run" or does_the_same(change, before, unasked=True))
        )
        for change in newer.changes
    )


def brings_about(change: Change, held: Change | None) -> bool:
    """
    Tell whether a change leads to what was held, and nothing is lost by it.

    False where nothing was (None). How is another matter: a run that came to its own end
    meanwhile has its result found again.
    """
    # What goes leaves no document behind, and another one may have its name by now.
    if held is None or change.destructive > held.destructive or change.uid != held.uid:
        return False
    return _documents_after(change) == _documents_after(held)


def following(plan: Plan) -> int:
    """How many changes follow by themselves once runs that were asked to end have done so."""
    return sum(held.by is HeldBy.ENDING for held in plan.held)


def runs_ended_by(change: Change) -> frozenset[str]:
    return frozenset() if change.stake is None else frozenset(change.stake.runs)


def _documents_after(change: Change) -> set[tuple[ResourceKey, str]]:
    """The resources after it, by the digests of their documents: values that wait are sealed."""
    return {
        (step.resource, step.arguments["digest"])
        for step in change.steps
        if "digest" in step.arguments
    }

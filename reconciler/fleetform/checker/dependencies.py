"""That nothing begins on what the tree says is another one, or is to run again."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.checker.context import KINDS, Reading
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.plan import Action
from fleetform.model.rows import quiet_digests
from fleetform.spec.desired import ResourceKey

__all__ = ["check_begins_on_declared", "check_begins_on_something"]

_BEGINS = frozenset({"queue.set", "run.submit", "volume.make", "volume.adopt"})
_MAKES = frozenset({"fleet.make", "fleet.adopt", "queue.set", "volume.make", "volume.adopt"})


def check_begins_on_something(reading: Reading) -> Iterator[Violation]:
    """What something needs to begin is there, or this plan makes it."""
    made = {step.resource for _, step in reading.steps if step.verb in _MAKES}
    quiet = quiet_digests(reading.rows)
    for _, step in reading.steps:
        declared = reading.declared(step.resource) if step.verb in _BEGINS else None
        for needed in () if declared is None else declared.references:
            # Of what is as declared, no more than a digest is known; to ask would read every row.
            if needed.kind not in KINDS or needed in made or needed in quiet:
                continue
            row = reading.row(needed)
            if row is None or row.archived:
                yield Violation(
                    Invariant.BEGINS_ON_SOMETHING,
                    f"{step.resource} would start on {needed}, which does not exist",
                )


def check_begins_on_declared(reading: Reading) -> Iterator[Violation]:
    """While something waits to be another one, nothing is begun on the one that goes."""
    left = [one.change for one in reading.plan.held]
    left += (one.change for one in reading.plan.deferred)
    outdated = {change.key for change in left if change.action is Action.REPLACE}
    for _, step in reading.steps if outdated else ():
        declared = reading.declared(step.resource)
        if step.verb not in _BEGINS or declared is None:
            continue
        runs = (ResourceKey("run", name) for name in declared.upstream)
        for needed in sorted(outdated.intersection((*declared.references, *runs))):
            yield Violation(
                Invariant.BEGINS_ON_DECLARED,
                f"{step.resource} would start on {needed}, which is to be replaced",
            )

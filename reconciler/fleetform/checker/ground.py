"""That nothing begins on what the tree says is another one."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.checker.invariant import Invariant, Violation
from fleetform.checker.reading import Reading
from fleetform.model.plan import Action

__all__ = ["check_begins_on_declared"]

_BEGINS = frozenset({"run.submit", "volume.make"})


def check_begins_on_declared(reading: Reading) -> Iterator[Violation]:
    """While a fleet or volume waits to be another one, nothing is begun on the one that goes."""
    left = [one.change for one in reading.plan.held]
    left += (one.change for one in reading.plan.deferred)
    outdated = {
        change.key
        for change in left
        if change.action is Action.REPLACE and change.key.kind in {"fleet", "volume"}
    }
    for _, step in reading.steps if outdated else ():
        declared = reading.declared(step.resource)
        if step.verb not in _BEGINS or declared is None:
            continue
        for needed in sorted(outdated.intersection(declared.references)):
            yield Violation(
                Invariant.BEGINS_ON_DECLARED, f"{step.resource} begins on the {needed} that goes"
            )

"""That what was renamed is the same under its new name, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.checker.called import MOVE, moves, name_before
from fleetform.checker.context import Reading
from fleetform.checker.invariant import Invariant, Violation
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames


def check_moves_declared(reading: Reading) -> Iterator[Violation]:
    """Each renaming is declared, of something that is there, to a name that nobody has."""
    declared = Renames(dict(reading.desired.moved))
    for _, step in reading.steps:
        if step.verb != MOVE:
            continue
        before, rows = name_before(step), reading.live.resources
        if declared.of(before) != step.resource:
            yield Violation(
                Invariant.MOVED_IS_THE_SAME,
                f"`moved:` does not say that {before} is {step.resource}",
            )
        row, there = rows.get(before), rows.get(step.resource)
        if row is None:
            yield Violation(
                Invariant.MOVED_IS_THE_SAME, f"{before} would be renamed and does not exist"
            )
        if there is not None and not there.archived:
            yield Violation(
                Invariant.MOVED_IS_THE_SAME,
                f"{before} would be renamed to {step.resource}, which exists",
            )


def check_moved_kept(reading: Reading) -> Iterator[Violation]:
    """What is declared under another name is not taken for something that goes."""
    if reading.permissions.destroy or not reading.desired.moved:
        return
    declared = Renames(dict(reading.desired.moved))
    renamed = {step.resource for step in moves(reading.plan)}
    known = {*reading.desired.resources, *reading.desired.removed}
    known |= {ResourceKey(key.kind, one.parent) for key, one in reading.desired.resources.items()}
    targets = dict(reading.desired.moved)
    for key in reading.live.resources:
        after = declared.of(key)
        if after == key or after in reading.live.resources:
            continue
        parent = ResourceKey(key.kind, split_element(key.name)[0])
        target = targets.get(key, targets.get(parent, after))
        if after in renamed and {after, target} & known:
            continue
        for _, step in reading.steps:
            if step.resource in {key, after}:
                yield Violation(
                    Invariant.MOVED_IS_KEPT,
                    f"{step.key} is planned, and {key} is now named {after}",
                )

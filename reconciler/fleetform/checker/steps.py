"""That a plan's steps can be carried out as they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from fleetform.checker.context import Reading
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.plan import Action

# What each kind's actions may consist of: nothing else, and at least one of them.
_VERBS: Mapping[tuple[str, Action], frozenset[str]] = {
    ("environment", Action.UPDATE): frozenset({"rules.set"}),
    ("fleet", Action.CREATE): frozenset({"fleet.make"}),
    ("fleet", Action.UPDATE): frozenset({"fleet.update"}),
    ("fleet", Action.DELETE): frozenset({"fleet.remove"}),
    ("fleet", Action.REPLACE): frozenset({"fleet.remove", "fleet.make"}),
    ("fleet", Action.FORGET): frozenset({"fleet.forget"}),
    ("fleet", Action.ADOPT): frozenset({"fleet.adopt"}),
    ("queue", Action.CREATE): frozenset({"queue.set"}),
    ("queue", Action.UPDATE): frozenset({"queue.set"}),
    ("queue", Action.DELETE): frozenset({"queue.remove"}),
    ("volume", Action.ADOPT): frozenset({"volume.adopt"}),
    ("run", Action.FORGET): frozenset({"run.stop", "run.forget"}),
    ("volume", Action.CREATE): frozenset({"volume.make"}),
    ("volume", Action.UPDATE): frozenset({"volume.update"}),
    ("volume", Action.REPLACE): frozenset(
        {"volume.forget", "volume.remove", "volume.snapshot", "volume.make", "volume.update"}
    ),
    ("volume", Action.FORGET): frozenset({"volume.forget", "volume.snapshot"}),
    ("volume", Action.DELETE): frozenset({"volume.remove"}),
    ("run", Action.CREATE): frozenset({"run.submit", "run.restore"}),
    ("run", Action.UPDATE): frozenset({"run.update", "run.stop"}),
    ("run", Action.REPLACE): frozenset({"run.stop", "run.archive", "run.submit"}),
    ("run", Action.DELETE): frozenset({"run.stop", "run.archive"}),
    ("run", Action.ARCHIVE): frozenset({"run.archive"}),
}

# For these counts what counts at the beginning.
_MAKES = frozenset({"run.submit", "fleet.make", "volume.make"})

_CARRIES_DOCUMENT = frozenset(
    {
        "fleet.make",
        "fleet.adopt",
        "fleet.update",
        "volume.make",
        "volume.adopt",
        "volume.update",
        "queue.set",
        "run.submit",
        "run.update",
        "run.restore",
    }
)


# Stands in front of whatever else happens to what was renamed.
_MOVE = "resource.move"


def check_keys_unique(reading: Reading) -> Iterator[Violation]:
    counts = Counter(step.key for _, step in reading.steps)
    for key, count in sorted(counts.items()):
        if count > 1:
            yield Violation(Invariant.STEPS_NAMED_ONCE, f"{count} steps have the key {key}")


def check_needs_exist(reading: Reading) -> Iterator[Violation]:
    keys = {step.key for _, step in reading.steps}
    for _, step in reading.steps:
        for need in step.needs:
            if need not in keys:
                yield Violation(
                    Invariant.STEPS_NEEDS_EXIST,
                    f"{step.key} waits for {need}, which is not in the plan",
                )


def check_acyclic(reading: Reading) -> Iterator[Violation]:
    needs = {step.key: step.needs for _, step in reading.steps}
    # Nearly all of them wait for what waits for nothing, and can be in no circle; looking for one
    # among ten thousand takes longer than all other checks of steps.
    free = {key for key, needed in needs.items() if not needed}
    deeper = {key: needed for key, needed in needs.items() if not free.issuperset(needed)}
    sorter = TopologicalSorter(deeper)
    try:
        sorter.prepare()
    except CycleError as error:
        yield Violation(Invariant.STEPS_ACYCLIC, " waits for ".join(reversed(error.args[1])))


def check_fit_action(reading: Reading) -> Iterator[Violation]:
    for change in reading.plan.changes:
        allowed = _VERBS.get((change.key.kind, change.action), frozenset())
        verbs = [step.verb for step in change.steps]
        names = {change.key.name, change.replaces}
        if not verbs:
            yield Violation(Invariant.STEPS_FIT_ACTION, f"{change.key} has no step")
        for step in change.steps:
            fits = step.verb in allowed or (step.verb == _MOVE and bool(change.moved_from))
            if not fits or step.resource.name not in names:
                yield Violation(
                    Invariant.STEPS_FIT_ACTION,
                    f"{step.key} is a step of {change.action} of {change.key}",
                )


def check_documents_declared(reading: Reading) -> Iterator[Violation]:
    for change, step in reading.steps:
        if step.verb not in _CARRIES_DOCUMENT:
            continue
        making = any(one.verb in _MAKES for one in change.steps)
        declared = reading.declared(step.resource, making=making)
        if declared is None:
            yield Violation(
                Invariant.DOCUMENTS_AS_DECLARED,
                f"{step.key} creates a resource that no document declares",
            )
        elif (
            step.arguments.get("digest") != declared.digest
            or step.arguments.get("document") != declared.document
        ):
            yield Violation(
                Invariant.DOCUMENTS_AS_DECLARED, f"{step.key} contains another document"
            )

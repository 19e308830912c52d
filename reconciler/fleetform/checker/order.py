"""
That what goes does so in the one safe order: runs, then volumes, then fleets.

A step that does not wait for another may be carried out beside it, or before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from fleetform.checker.context import Reading, documents
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.live import LiveResource
from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey

_DROPS = frozenset({"volume.remove", "volume.forget", "volume.snapshot"})
_LETS_GO = frozenset({"fleet.remove", "fleet.forget"})


def check_removal_ordered(reading: Reading) -> Iterator[Violation]:
    """Whatever ends the use of a volume or a fleet comes before it goes."""
    going = {
        step.resource: step
        for _, step in reading.steps
        if step.verb in _DROPS or step.verb in _LETS_GO
    }
    if not going:
        return
    awaited = {step.key: _before(reading, step) for step in going.values()}
    for user, resource in _uses(reading, going):
        step = going[resource]
        if user.key not in awaited[step.key]:
            yield Violation(Invariant.REMOVAL_ORDERED, f"{step.key} does not wait for {user.key}")


def _uses(
    reading: Reading, going: Mapping[ResourceKey, Step]
) -> Iterator[tuple[Step, ResourceKey]]:
    """The steps that end a use, each with what is used."""
    fleets = [key for key in going if key.kind == "fleet"]
    for _, step in reading.steps:
        row = reading.row(step.resource)
        if row is None:
            continue
        if step.verb == "run.stop":
            used: Iterable[ResourceKey] = _used_by_run(row, fleets)
        elif step.verb in _DROPS:
            used = (ResourceKey("fleet", json.loads(row.document).get("fleet", "")),)
        else:
            continue
        for key in used:
            if key in going:
                yield step, key


def _used_by_run(row: LiveResource, fleets: list[ResourceKey]) -> Iterator[ResourceKey]:
    for document in map(json.loads, documents(row)):
        for one in document.get("volumes", ()):
            names = one["name"] if isinstance(one["name"], list) else [one["name"]]
            yield from (ResourceKey("volume", name) for name in names)
        named = document.get("fleets")
        # Who names no fleet may be at work on any of them.
        yield from (ResourceKey("fleet", name) for name in named) if named else iter(fleets)


def check_successor_waits(reading: Reading) -> Iterator[Violation]:
    """What takes the place of something waits until that is gone."""
    for change in reading.plan.changes:
        ended = [step for step in change.steps if step.verb in {"run.stop", *_DROPS, *_LETS_GO}]
        made = [
            step
            for step in change.steps
            if step.verb in {"run.submit", "run.archive", "volume.make", "fleet.make"}
        ]
        for later in made if ended else ():
            for earlier in ended:
                if earlier.key not in _before(reading, later):
                    yield Violation(
                        Invariant.SUCCESSOR_WAITS, f"{later.key} does not wait for {earlier.key}"
                    )


def _before(reading: Reading, step: Step) -> frozenset[str]:
    """Keys of all steps that a step waits for, directly or not."""
    found: set[str] = set()
    waiting = list(step.needs)
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            if (needed := reading.steps_by_key.get(key)) is not None:
                waiting.extend(needed.needs)
    return frozenset(found)

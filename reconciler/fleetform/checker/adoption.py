"""That what is let go stays as it is, and that only what was meant is taken in as it is found."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.checker.context import Reading, at_work, destroys
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey

_FORGETS = frozenset({"fleet.forget", "run.forget"})
_ADOPTS = frozenset({"fleet.adopt", "volume.adopt"})


def check_let_go_kept(reading: Reading) -> Iterator[Violation]:
    """Nothing of it is ended, and only what `removed:` names is forgotten by a verb of its own."""
    if reading.permissions.destroy:
        return
    let_go = frozenset(reading.desired.removed)
    for change in reading.plan.changes:
        is_let_go = bool(let_go) and not let_go.isdisjoint(
            (change.key, ResourceKey(change.key.kind, change.parent))
        )
        for step in change.steps:
            if step.verb in _FORGETS and not is_let_go:
                yield Violation(
                    Invariant.LET_GO_IS_KEPT,
                    f"`removed:` does not list {change.key}, which would be released",
                )
            if is_let_go and destroys(reading, step):
                yield Violation(
                    Invariant.LET_GO_IS_KEPT, f"{step.key} is planned for a released resource"
                )
        row = reading.row(change.key)
        if is_let_go and row is not None and at_work(row):
            yield Violation(
                Invariant.LET_GO_IS_KEPT, f"{change.key} is running and would be released"
            )


def check_returns_own(reading: Reading) -> Iterator[Violation]:
    """What comes back is what the ledger let go, under that name and in that place, and pinned."""
    left = {(one.volume, one.uid, one.path) for one in reading.live.left}
    called = reading.earlier_names
    for _, step in reading.steps:
        uid = step.arguments.get("returns")
        if uid is None:
            continue
        known_as = called.get(step.resource, step.resource).name
        place = str(step.arguments.get("path", ""))
        if step.verb == "volume.make" and (uid, place) == _let_go_before(reading, step):
            continue
        if step.verb != "volume.make" or (known_as, uid, place) not in left:
            yield Violation(
                Invariant.RETURNS_ITS_OWN, f"{step.resource} would get the data in {place}"
            )
        elif reading.claims.get(("left", step.resource)) != uid:
            yield Violation(
                Invariant.RETURNS_ITS_OWN,
                f"no predicate names the data in {place} for {step.resource}",
            )


def _let_go_before(reading: Reading, step: Step) -> tuple[str, str]:
    """Uid and place of what the same plan lets go of under this name first; empty where nothing."""
    row = reading.row(step.resource)
    first = reading.steps_by_key.get(f"volume.forget:{step.resource}")
    if row is None or first is None or first.key not in step.needs:
        return ("", "")
    return (row.uid, str(first.arguments.get("path", "")))


def check_found_asked_for(reading: Reading) -> Iterator[Violation]:
    for _, step in reading.steps:
        if step.verb in _ADOPTS and step.resource not in reading.desired.imports:
            yield Violation(Invariant.FOUND_IS_ASKED_FOR, f"{step.resource} would be adopted")

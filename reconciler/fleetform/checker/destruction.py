"""What is lost by a plan, and whether somebody has allowed it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from fleetform.checker.context import Reading, destroys, ends_on, is_over
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.plan import Change
from fleetform.model.rows import restless_rows
from fleetform.spec.desired import ResourceKey

# After one of these, what the row stood for is gone, or another has its name.
_ENDS = frozenset(
    {
        "fleet.remove",
        "fleet.forget",
        "volume.remove",
        "volume.forget",
        "volume.snapshot",
        "run.archive",
        "run.forget",
        "run.submit",
    }
)


def check_protected_kept(reading: Reading) -> Iterator[Violation]:
    for _, step in reading.steps:
        row = reading.row(step.resource)
        ends = step.verb in _ENDS or destroys(reading, step)
        if ends and row is not None and row.protected:
            yield Violation(
                Invariant.PROTECTED_STAYS, f"{step.verb} is planned for {step.resource}"
            )
        if step.resource.kind == "fleet" and ends:
            for run in _protected_on(reading, step.resource):
                yield Violation(
                    Invariant.PROTECTED_STAYS,
                    f"{step.verb} is planned for {step.resource}, which runs {run}",
                )


def _protected_on(reading: Reading, fleet: ResourceKey) -> Iterator[ResourceKey]:
    """Protected runs that are at work on a fleet, by the names that the ledger knows."""
    gone = {one.part for one in reading.live.drift if one.field == "host"}
    for work in ends_on(reading, fleet):
        key = ResourceKey("run", work.run)
        row = reading.live.resources.get(key)
        # With one of its hosts it is lost already.
        if row is not None and row.protected and not gone.intersection(work.hosts):
            yield key


def check_destruction_declared(reading: Reading) -> Iterator[Violation]:
    for change in _destroying(reading):
        if not change.destructive:
            yield Violation(
                Invariant.DESTRUCTION_DECLARED,
                f"{change.key} would be lost, and the plan does not say so",
            )


def check_destruction_permitted(reading: Reading) -> Iterator[Violation]:
    if reading.permissions.allow_destroy or reading.rules.allow_destroy:
        return
    for change in _destroying(reading):
        if not _restart_permitted(reading, change):
            yield Violation(
                Invariant.DESTRUCTION_PERMITTED, f"no permission to end {change.key} was given"
            )


def check_budget_held(reading: Reading) -> Iterator[Violation]:
    if reading.permissions.destroy:
        return
    doomed = Counter(key.kind for key in _lost(reading))
    if not doomed:
        return
    totals = Counter(key.kind for key in reading.live.resources)
    totals.subtract(
        key.kind for key, row in restless_rows(reading.live.resources).items() if row.archived
    )
    for kind, count in sorted(doomed.items()):
        limit = max(
            reading.rules.delete_count,
            totals[kind] * reading.rules.delete_percent // 100,
            reading.permissions.allow_deletes or 0,
        )
        if count > limit:
            yield Violation(
                Invariant.WITHIN_BUDGET,
                f"the plan deletes {count} of {totals[kind]} {kind}s, and {limit} are allowed",
            )


def _lost(reading: Reading) -> set[ResourceKey]:
    """All that is not there after the plan, by whatever it ends: each run and resource once."""
    destroying = _destroying(reading)
    lost = {ResourceKey(one.key.kind, one.replaces or one.key.name) for one in destroying}
    fleets = [one.key for one in destroying if one.key.kind == "fleet"]
    called = {before: after for after, before in reading.earlier_names.items()}
    for work in (work for fleet in fleets for work in ends_on(reading, fleet)):
        run = ResourceKey("run", work.run)
        row = reading.live.resources.get(run)
        # What an earlier plan has ended, or what came to its end, is not lost by this one.
        if row is None or not (row.archived or is_over(row)):
            lost.add(called.get(run, run))
    return lost


def _destroying(reading: Reading) -> list[Change]:
    """Changes that destroy by their steps, or that say they do; each once."""
    by_steps = reading.destroyed
    return [
        change for change in reading.plan.changes if change.destructive or change.key in by_steps
    ]


def _restart_permitted(reading: Reading, change: Change) -> bool:
    """Ending a run in order to start it anew can be allowed by itself."""
    # What it is called is another matter.
    verbs = [(one.verb, one.resource) for one in change.steps if one.verb != "resource.move"]
    if verbs != [("run.stop", change.key), ("run.submit", change.key)]:
        return False
    declared, row = reading.declared(change.key), reading.row(change.key)
    asked = (
        declared is not None
        and declared.document.get("on_change") == "restart"
        # What a commit loosens helps the next plan.
        and row is not None
        and json.loads(row.document).get("on_change") == "restart"
    )
    return asked or reading.permissions.allow_restart

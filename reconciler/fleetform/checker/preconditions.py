"""That a plan says what must still hold when it is carried out."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleetform.checker.context import (
    KINDS,
    Invariant,
    Reading,
    Violation,
    at_work,
    ends_on,
    hosts_ending,
    is_over,
)
from fleetform.model.plan import Step
from fleetform.model.predicates import AtWork
from fleetform.model.verbs import FREES_PATH, Verb
from fleetform.spec.desired import ResourceKey, Rules


def check_rows_pinned(reading: Reading) -> Iterator[Violation]:
    """Each row by its generation, each absence as such, each wait as not begun."""
    seen: set[object] = set()
    for _, step in reading.steps:
        key = step.resource
        if key.kind not in KINDS:
            continue
        row = reading.row(key)
        gone = row is None or (row.archived and key.kind != "run")
        if key not in seen:
            seen.add(key)
            if gone and ("absent", key) not in reading.claims:
                yield Violation(Invariant.ROWS_PINNED, f"no predicate says that {key} is absent")
            if row is not None and not gone:
                # The ledger knows it by its earlier name, and the new one must be free.
                known_as = reading.earlier_names.get(key, key)
                if known_as != key and ("absent", key) not in reading.claims:
                    yield Violation(
                        Invariant.ROWS_PINNED, f"no predicate says that {key} is absent"
                    )
                pinned = reading.claims.get(("generation", known_as))
                if pinned != str(row.generation):
                    yield Violation(
                        Invariant.ROWS_PINNED,
                        f"{key} has generation {row.generation}, and its predicate has {pinned}",
                    )
        waiting = ("run-not-started", reading.earlier_names.get(key, key))
        if _ends_what_waits(reading, step) and waiting not in reading.claims:
            yield Violation(Invariant.ROWS_PINNED, f"no predicate says that {key} has not started")


def _ends_what_waits(reading: Reading, step: Step) -> bool:
    row = reading.row(step.resource)
    if step.verb != Verb.RUN_STOP or row is None:
        return False
    return not is_over(row) and not at_work(row)


def check_work_pinned(reading: Reading) -> Iterator[Violation]:
    """Of a file it may name who has ended since; nobody may be at work whom it does not name."""
    said = {change.key for change in reading.plan.changes if change.destructive}
    said |= {step.resource for _, step in reading.steps if step.verb == Verb.FLEET_FORGET}
    for key in sorted(reading.destroyed | said):
        if key.kind != "fleet":
            continue
        fleet = reading.earlier_names.get(key, key)
        here = {one.run for one in ends_on(reading, key)}
        pinned = reading.claims.get(("at-work", fleet))
        told = None if pinned is None else AtWork.of(pinned)
        if (
            told is None
            or told.hosts != hosts_ending(reading, key)
            or (here != told.runs if reading.plan.kept is None else here - told.runs)
        ):
            yield Violation(
                Invariant.WORK_PINNED, f"the runs on {key} are {', '.join(sorted(here)) or 'none'}"
            )


def check_unattached_pinned(reading: Reading) -> Iterator[Violation]:
    """Who has begun to use a volume since keeps it; only whom the plan ends may have it mounted."""
    ended = {
        reading.earlier_names.get(step.resource, step.resource).name
        for _, step in reading.steps
        if step.verb == Verb.RUN_STOP
    }
    for _, step in reading.steps:
        if step.verb not in FREES_PATH:
            continue
        said = reading.claims.get(
            ("unattached", reading.earlier_names.get(step.resource, step.resource))
        )
        if said is None or not ended.issuperset(json.loads(said)):
            yield Violation(
                Invariant.UNATTACHED_PINNED,
                f"the predicate for the runs that mount {step.resource} is {said or 'missing'}",
            )


def check_rules_pinned(reading: Reading) -> Iterator[Violation]:
    """Whatever destroys was judged by rules, and whoever sets them replaces some."""
    judged = bool(reading.destroyed) or any(
        step.verb == Verb.RULES_SET for _, step in reading.steps
    )
    environment = ResourceKey("environment", reading.plan.environment_name)
    said = reading.claims.get(("rules", environment))
    if judged and (said is None or Rules.of(json.loads(said)) != reading.rules):
        yield Violation(
            Invariant.RULES_PINNED, f"the predicate for the rules is {said or 'missing'}"
        )


def check_ledger_pinned(reading: Reading) -> Iterator[Violation]:
    live = reading.live
    if not live.ledger_id or not reading.plan.changes:
        return
    if reading.claims.get(("ledger", None)) != f"{live.ledger_id}/{live.epoch}":
        yield Violation(Invariant.LEDGER_PINNED, "no predicate names the ledger")

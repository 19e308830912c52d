"""
That a plan tells what people and machines rely on: the rules that judged it, what is at stake, and
a digest that is its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from fleetform.checker.context import Reading, at_work
from fleetform.checker.invariant import Invariant, Violation
from fleetform.checker.writing import text_of


def check_rules_applied_last(reading: Reading) -> Iterator[Violation]:
    """The rules that it says it was judged by are those last applied, not those it brings."""
    # One of a file says by a predicate which rules it needs, where it needs any.
    if reading.plan.kept is None and reading.plan.rules != reading.rules:
        yield Violation(
            Invariant.RULES_APPLIED_LAST,
            f"the plan was judged by {reading.plan.rules}, and {reading.rules} were applied last",
        )


def check_stake_told(reading: Reading) -> Iterator[Violation]:
    """What destroys says in words what is lost, and names the runs whose work it ends."""
    for change in reading.plan.changes:
        if change.destructive and not change.at_stake:
            yield Violation(Invariant.STAKE_TOLD, f"{change.key} has no impact")
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "run.stop" or row is None or not at_work(row):
            continue
        named = change.stake.runs if change.stake is not None else ()
        if step.resource.name not in named:
            yield Violation(
                Invariant.STAKE_TOLD,
                f"{change.key} would end {step.resource} and does not name it in its impact",
            )


def check_digest_right(reading: Reading) -> Iterator[Violation]:
    """Whoever approves a digest approves this plan: it is made anew from what the plan says."""
    plan = reading.plan
    read = hashlib.sha256()
    for part in text_of(plan):
        read.update(part.encode("utf-8", "surrogatepass"))
    found = read.hexdigest()
    if found != plan.digest:
        yield Violation(
            Invariant.DIGEST_RIGHT,
            f"the plan has the digest {plan.digest[:12]}, and its content has {found[:12]}",
        )

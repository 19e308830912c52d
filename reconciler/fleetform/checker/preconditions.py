"""That a plan says what must still hold when it is carried out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleetform.checker.context import (
    PlanContext,
    at_work,
    ends_on,
    hosts_ending,
    is_over,
)
from fleetform.model.predicates import AtWork
from fleetform.model.verbs import FREES_PATH, KINDS, Verb
from fleetform.spec.desired import ResourceKey, Rules

if TYPE_CHECKING:
    from fleetform.model.plan import Step


def check_rows_pinned(context: PlanContext) -> Iterator[str]:
    """Each row by its generation, each absence as such, each wait as not begun."""
    seen: set[object] = set()
    for _, step in context.steps:
        key = step.resource
        if key.kind not in KINDS:
            continue
        row = context.row(key)
        gone = row is None or (row.archived and key.kind != "run")
        if key not in seen:
            seen.add(key)
            if gone and ("absent", key) not in context.claims:
                yield f"no predicate says that {key} is absent"
            if row is not None and not gone:
                # The ledger knows it by its earlier name, and the new one must be free.
                known_as = context.earlier_names.get(key, key)
                if known_as != key and ("absent", key) not in context.claims:
                    yield f"no predicate says that {key} is absent"
                pinned = context.claims.get(("generation", known_as))
                if pinned != str(row.generation):
                    yield f"{key} has generation {row.generation}, and its predicate has {pinned}"
        waiting = ("run-not-started", context.earlier_names.get(key, key))
        if _ends_what_waits(context, step) and waiting not in context.claims:
            yield f"no predicate says that {key} has not started"


def _ends_what_waits(context: PlanContext, step: Step) -> bool:
    row = context.row(step.resource)
    if step.verb != Verb.RUN_STOP or row is None:
        return False
    return not is_over(row) and not at_work(row)


def check_work_pinned(context: PlanContext) -> Iterator[str]:
    """A saved plan may name runs that have ended since; every run at work must be named."""
    said = {change.key for change in context.plan.changes if change.destructive}
    said |= {step.resource for _, step in context.steps if step.verb == Verb.FLEET_FORGET}
    for key in sorted(context.destroyed | said):
        if key.kind != "fleet":
            continue
        fleet = context.earlier_names.get(key, key)
        here = {one.run for one in ends_on(context, key)}
        pinned = context.claims.get(("at-work", fleet))
        told = None if pinned is None else AtWork.of(pinned)
        if (
            told is None
            or told.hosts != hosts_ending(context, key)
            or (here != told.runs if context.plan.kept is None else here - told.runs)
        ):
            yield f"the runs on {key} are {', '.join(sorted(here)) or 'none'}"


def check_unattached_pinned(context: PlanContext) -> Iterator[str]:
    """Who has begun to use a volume since keeps it; only whom the plan ends may have it mounted."""
    ended = {
        context.earlier_names.get(step.resource, step.resource).name
        for _, step in context.steps
        if step.verb == Verb.RUN_STOP
    }
    for _, step in context.steps:
        if step.verb not in FREES_PATH and step.verb != Verb.VOLUME_WITHDRAW:
            continue
        said = context.claims.get(
            ("unattached", context.earlier_names.get(step.resource, step.resource))
        )
        if said is None or not ended.issuperset(json.loads(said)):
            yield f"the predicate for the runs that mount {step.resource} is {said or 'missing'}"


def check_rules_pinned(context: PlanContext) -> Iterator[str]:
    """A destructive change was judged by rules, and a change of the rules pins the earlier ones."""
    judged = bool(context.destroyed) or any(
        step.verb == Verb.RULES_SET for _, step in context.steps
    )
    environment = ResourceKey("environment", context.plan.environment_name)
    said = context.claims.get(("rules", environment))
    if judged and (said is None or Rules.of(json.loads(said)) != context.rules):
        yield f"the predicate for the rules is {said or 'missing'}"


def check_ledger_pinned(context: PlanContext) -> Iterator[str]:
    live = context.live
    if not live.ledger_id or not context.plan.changes:
        return
    if context.claims.get(("ledger", None)) != f"{live.ledger_id}/{live.epoch}":
        yield "no predicate names the ledger"

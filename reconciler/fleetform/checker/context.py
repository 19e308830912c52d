"""
What a check may look at: the plan, what it was made from, and a few tables over it.

Facts are derived from the ledger's rows and the steps, never from what a change says of itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fleetform.checker.called import earlier_names, host_called, renamed_rows
from fleetform.model.live import Live, LiveResource, Work
from fleetform.model.plan import WHOLE, Change, Permissions, Plan, Scope, Step
from fleetform.model.run_state import FINAL, RunState
from fleetform.spec.desired import Declared, Desired, ResourceKey, Rules, left_alone
from fleetform.spec.ignore_changes import overlook, overlooks

KINDS = frozenset({"fleet", "queue", "volume", "run"})


@dataclass(frozen=True)
class Reading:
    """One plan under examination; without slots, for the tables are made on first use."""

    plan: Plan
    desired: Desired
    live: Live
    permissions: Permissions
    scope: Scope = WHOLE

    @cached_property
    def rules(self) -> Rules:
        """Those last applied, whatever the plan claims to have been judged by."""
        return self.live.rules or Rules()

    @cached_property
    def steps(self) -> tuple[tuple[Change, Step], ...]:
        return tuple((change, step) for change in self.plan.changes for step in change.steps)

    @cached_property
    def steps_by_key(self) -> dict[str, Step]:
        return {step.key: step for _, step in self.steps}

    @cached_property
    def claims(self) -> dict[tuple[str, ResourceKey | None], str]:
        return {(one.claim, one.resource): one.value for one in self.plan.predicates}

    @cached_property
    def destroyed(self) -> frozenset[ResourceKey]:
        """Keys of the changes that destroy by what they do, whatever they say."""
        return frozenset(change.key for change, step in self.steps if destroys(self, step))

    def row(self, key: ResourceKey) -> LiveResource | None:
        return self.rows.get(key)

    @cached_property
    def rows(self) -> Mapping[ResourceKey, LiveResource]:
        """The ledger's by the names that the tree uses: those that the plan renames them to."""
        return renamed_rows(self.plan, self.live)

    @cached_property
    def earlier_names(self) -> dict[ResourceKey, ResourceKey]:
        """Of what is renamed: the name that the ledger knows, by the new one."""
        return earlier_names(self.plan)

    def declared(self, key: ResourceKey, *, making: bool = False) -> Declared | None:
        """What is to be, with the values that stay where the document overlooks a difference."""
        if self.permissions.destroy:
            return None
        declared = self.desired.resources.get(key)
        row = None if declared is None or not overlooks(declared) else self.row(key)
        if declared is None or row is None:
            return declared
        return overlook(declared, row.document, row.digest, row.own_digest, making=making)

    @cached_property
    def left_alone(self) -> frozenset[ResourceKey]:
        return frozenset() if self.permissions.destroy else left_alone(self.desired)

    def is_left_alone(self, key: ResourceKey, parent: str) -> bool:
        return key in self.left_alone or (
            parent != "" and ResourceKey(key.kind, parent) in self.left_alone
        )

    def is_called_otherwise(self, key: ResourceKey, parent: str) -> bool:
        """Tell whether the tree means it by another name, of which nobody can tell what it says."""
        called = dict(self.desired.moved)
        other = called.get(key) or called.get(ResourceKey(key.kind, parent))
        return other is not None and self.is_left_alone(other, "")


def is_over(row: LiveResource) -> bool:
    return row.run is not None and row.run.state in FINAL


def at_work(row: LiveResource) -> bool:
    """Tell whether ending this run now could lose work, if only that of the one it waits for."""
    return has_begun(row) or (row.run is not None and row.run.earlier is not None)


def documents(row: LiveResource, *, begun: bool = False) -> tuple[str, ...]:
    """
    Say by which documents something is used under a name: the applied one, and an earlier run's.

    With `begun` only those of what has a place, or may have one.
    """
    own = (row.document,) if has_begun(row) or not begun else ()
    if row.run is None:
        return own
    at_work = (row.run.executed, row.run.earlier.document if row.run.earlier else "")
    return (*own, *filter(None, at_work))


def has_begun(row: LiveResource) -> bool:
    """Tell whether this run itself has a place, or may have one."""
    if row.run is None or row.run.state in FINAL:
        return False
    return row.run.state not in {RunState.PENDING, RunState.SUBMITTED}


_MAY_DESTROY = frozenset({"fleet.remove", "fleet.update", "run.stop", "volume.remove"})


def destroys(reading: Reading, step: Step) -> bool:
    """Tell from the step and the row alone whether something is deleted or cut short."""
    # First, for hardly any step of a great plan is one of these.
    if step.verb not in _MAY_DESTROY:
        return False
    if step.verb in {"fleet.remove", "volume.remove"}:
        return True
    row = reading.row(step.resource)
    if step.verb == "fleet.update" and row is not None:
        return _exchanges_at_once(reading, step, row)
    return step.verb == "run.stop" and row is not None and at_work(row)


def _exchanges_at_once(reading: Reading, step: Step, row: LiveResource) -> bool:
    """Whatever has become of the last step on a fleet, its hosts are there with what runs on them."""
    after = step.arguments.get("document", {})
    if not waits_for_nobody(after):
        return False
    if step.arguments.get("exchange"):
        return True
    if has_document(row):
        before = json.loads(row.document)
        return divides_anew(before, after) or hastens(reading, step.resource, before, after)
    return _has_others(reading, step)


def has_document(row: LiveResource) -> bool:
    """Tell whether it was ever made in whole; a digest is lost again where a later step fails."""
    return row.document not in {"", "{}"}


def _has_others(reading: Reading, step: Step) -> bool:
    """Tell whether a fleet has hosts that have answered and were made from something else."""
    known_as = reading.earlier_names.get(step.resource, step.resource)
    wanted = {"", step.arguments.get("template", "")}
    return any(
        one.fleet == known_as.name and one.install_id and one.template_digest not in wanted
        for one in reading.live.instances
    )


def hastens(
    reading: Reading, fleet: ResourceKey, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """An exchange of hosts that is under way, and waited for work until now, does so no more."""
    known_as = reading.earlier_names.get(fleet, fleet)
    is_other = waits_for_nobody(after) and not waits_for_nobody(before)
    return is_other and known_as.name in reading.live.exchanging


def waits_for_nobody(document: Mapping[str, Any]) -> bool:
    """Tell whether hosts of a fleet give way to others together with what runs on them."""
    return bool((document.get("update") or {}).get("strategy") == "recreate")


def divides_anew(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Hosts of a fleet that are divided in another way are others."""
    return any(
        before.get(name, default) != after.get(name, default)
        for name, default in (("sharing", "exact"), ("blocks", 1))
    )


def ends_on(reading: Reading, fleet: ResourceKey) -> Iterator[Work]:
    """Work on the hosts of a fleet that a plan does away with, by the names of the ledger."""
    some, known_as = hosts_ending(reading, fleet), reading.earlier_names.get(fleet, fleet)
    for work in reading.live.work:
        if work.fleet == known_as.name and (not some or not work.hosts or some & {*work.hosts}):
            yield work


def hosts_ending(reading: Reading, fleet: ResourceKey) -> frozenset[str]:
    """Name the hosts that a plan does away with, as the ledger knows them; empty where it is all."""
    row, known_as = reading.row(fleet), reading.earlier_names.get(fleet, fleet)
    steps = [step for _, step in reading.steps if step.resource == fleet]
    some: set[str] | None = set()
    for step in steps:
        after = step.arguments.get("document", {})
        before = json.loads(row.document) if row is not None and row.document else None
        is_anew = (
            before is None
            or divides_anew(before, after)
            or hastens(reading, fleet, before, after)
            or (before == {} and _has_others(reading, step))
        )
        if step.verb != "fleet.update" or is_anew or "exchange" not in step.arguments:
            some = None if destroys(reading, step) else some
        elif some is not None:
            some.update(step.arguments["exchange"])
    return frozenset(host_called(host, fleet.name, known_as.name) for host in some or ())

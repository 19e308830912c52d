"""
What a check may look at: the plan, what it was made from, and a few tables over it.

Facts are derived from the ledger's rows and the steps, never from what a change says of itself.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fleetform.model.plan import WHOLE, Change, Permissions, Plan, Scope, Step
from fleetform.model.run_state import FINAL, RunState
from fleetform.model.verbs import MAY_DESTROY, Verb
from fleetform.spec.desired import Declared, Desired, ResourceKey, Rules, left_alone
from fleetform.spec.ignore_changes import overlook, overlooks
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames, digests_of, rename_references

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource, Work


@dataclass(frozen=True)
class PlanContext:
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
        """Tell whether the configuration may declare it under another name, in an invalid document."""
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


def destroys(context: PlanContext, step: Step) -> bool:
    """Tell from the step and the row alone whether something is deleted or cut short."""
    # First, for hardly any step of a great plan is one of these.
    if step.verb not in MAY_DESTROY:
        return False
    if step.verb in {Verb.FLEET_REMOVE, Verb.VOLUME_REMOVE}:
        return True
    if step.verb == Verb.VOLUME_WITHDRAW:
        return step.arguments.get("data") == "delete"
    row = context.row(step.resource)
    if step.verb == Verb.FLEET_UPDATE and row is not None:
        return _exchanges_at_once(context, step, row)
    return step.verb == Verb.RUN_STOP and row is not None and at_work(row)


def _exchanges_at_once(context: PlanContext, step: Step, row: LiveResource) -> bool:
    """Whatever has become of the last step on a fleet, its hosts are there with what runs on them."""
    after = step.arguments.get("document", {})
    if not recreates_at_once(after):
        return False
    if step.arguments.get("exchange"):
        return True
    if has_document(row):
        before = row.parsed
        return repartitions(before, after) or stops_waiting(context, step.resource, before, after)
    return _has_others(context, step)


def has_document(row: LiveResource) -> bool:
    """Tell whether it was ever made in whole; a digest is lost again where a later step fails."""
    return row.document not in {"", "{}"}


def _has_others(context: PlanContext, step: Step) -> bool:
    """Tell whether a fleet has hosts that have answered and were made from something else."""
    known_as = context.earlier_names.get(step.resource, step.resource)
    wanted = {"", step.arguments.get("template", "")}
    return any(
        one.fleet == known_as.name and one.install_id and one.template_digest not in wanted
        for one in context.live.instances
    )


def stops_waiting(
    context: PlanContext, fleet: ResourceKey, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """An exchange of hosts that is under way, and waited for work until now, does so no more."""
    known_as = context.earlier_names.get(fleet, fleet)
    is_other = recreates_at_once(after) and not recreates_at_once(before)
    return is_other and known_as.name in context.live.exchanging


def recreates_at_once(document: Mapping[str, Any]) -> bool:
    """Tell whether hosts of a fleet give way to others together with what runs on them."""
    return bool((document.get("update") or {}).get("strategy") == "recreate")


def repartitions(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Hosts of a fleet that are divided in another way are others."""
    return any(
        before.get(name, default) != after.get(name, default)
        for name, default in (("sharing", "exact"), ("blocks", 1))
    )


def ends_on(context: PlanContext, fleet: ResourceKey) -> Iterator[Work]:
    """Work on the hosts of a fleet that a plan does away with, by the names of the ledger."""
    some, known_as = hosts_ending(context, fleet), context.earlier_names.get(fleet, fleet)
    for work in context.live.work:
        if work.fleet == known_as.name and (not some or not work.hosts or some & {*work.hosts}):
            yield work


def hosts_ending(context: PlanContext, fleet: ResourceKey) -> frozenset[str]:
    """Name the hosts that a plan does away with, as the ledger knows them; empty where it is all."""
    row, known_as = context.row(fleet), context.earlier_names.get(fleet, fleet)
    steps = [step for _, step in context.steps if step.resource == fleet]
    some: set[str] | None = set()
    for step in steps:
        after = step.arguments.get("document", {})
        before = row.parsed if row is not None and row.document else None
        is_recreated = (
            before is None
            or repartitions(before, after)
            or stops_waiting(context, fleet, before, after)
            or (before == {} and _has_others(context, step))
        )
        if step.verb != Verb.FLEET_UPDATE or is_recreated or "exchange" not in step.arguments:
            some = None if destroys(context, step) else some
        elif some is not None:
            some.update(step.arguments["exchange"])
    return frozenset(host_called(host, fleet.name, known_as.name) for host in some or ())


# The invariants of a plan, each with its own sentence, and what breaks one.


class Invariant(enum.StrEnum):
    """What no plan may break, each as the sentence that people read."""

    RIGHT_PLACE = "a plan applies to one environment and one ledger"
    RECOVERING_CHANGES_NOTHING = "a plan changes nothing while the ledger is recovering"
    RECOVERING_STATED = "a plan states whether its ledger is recovering"
    ONE_CHANGE_A_RESOURCE = (
        "a plan has one change for each resource, in the order of kinds and names"
    )
    HELD_IS_NOT_DONE = "a plan does not apply a blocked change"
    LEFT_IS_LEFT = "a deferred change is neither applied nor blocked"
    NOTHING_FORGOTTEN = "every difference is a change, blocked or deferred"
    SCOPE_KEPT = "a plan applies no excluded change, and defers no change that `--target` selects"
    ONLY_SCOPE = "a plan with `--target` changes only the targets and the resources that they need"
    EXCHANGED_IS_ASKED_FOR = "a plan replaces a single host only where `--replace` names it"
    OVERRIDES_LISTED = "a plan lists exactly the overrides in force"
    OVERRIDES_KEPT = "a plan changes nothing that an override forbids"
    WINDOWS_KEPT = "a plan changes nothing that an open freeze window blocks"
    OWNERS_KEPT = (
        "a plan uses a directory only if it exists where needed, and no other environment owns it"
    )
    MOVED_IS_THE_SAME = "a renamed resource is the same resource under its new name"
    MOVED_IS_KEPT = "a renamed resource is neither removed nor created again"
    RELEASED_IS_KEPT = (
        "a plan releases only resources that `removed:` lists, and only when no work on them ends"
    )
    FOUND_IS_ASKED_FOR = "a plan adopts only resources that `import:` lists"
    RETURNS_ITS_OWN = (
        "a volume gets back only the data that was released under its name and at its path"
    )
    BROKEN_STAYS = "a plan changes no resource that has or needs an invalid document"
    UNREAD_REMOVES_NOTHING = "a plan removes nothing while a file cannot be read"
    PROTECTED_STAYS = "a plan does not remove, replace or end a protected resource"
    FINISHED_STAYS_FINISHED = (
        "a finished run re-runs only if its execution changed or a person requests it"
    )
    ONE_EXECUTION_AT_A_TIME = "a run starts again only after its earlier run has ended"
    RUNNING_KEEPS_ITS_EXECUTION = "a run keeps its execution while it runs"
    DESTRUCTION_PERMITTED = "a destructive change needs a permission"
    DESTRUCTION_DECLARED = "a destructive change is marked as destructive"
    WITHIN_BUDGET = "a plan deletes only as many resources as the budget allows"
    IMPACT_STATED = "a destructive change states its impact"
    POLICY_OBEYED = "the `deletion_policy` that was applied last decides about the data"
    SNAPSHOT_ADJACENT = "a snapshot has a name of its own next to the directory of its volume"
    LOSS_SEEN = "a missing directory is created again only where `--replace` names its volume"
    REMOVAL_ORDERED = "a plan ends the use of a resource before it removes the resource"
    SUCCESSOR_WAITS = "a replacement waits until the earlier resource has ended"
    REFERRED_TO_STAYS = "a plan removes nothing that a remaining resource refers to"
    BEGINS_ON_SOMETHING = "all that a new resource needs exists, or the plan creates it first"
    BEGINS_ON_DECLARED = "nothing starts on a resource whose replacement is blocked or deferred"
    PLACE_IS_FREE = "the directory of a volume does not overlap with the directory of another"
    USED_STAYS = "a plan removes nothing that a run uses unless the plan ends the run first"
    STEPS_NAMED_ONCE = "no two steps have the same key"
    STEPS_NEEDS_EXIST = "a step waits only for steps of its plan"
    STEPS_ACYCLIC = "no step waits for itself"
    STEPS_FIT_ACTION = "the steps of a change fit its action"
    DOCUMENTS_AS_DECLARED = "steps contain the declared documents"
    ROWS_PINNED = "a plan has a predicate for each resource that it changes"
    WORK_PINNED = "a plan that removes a fleet names the runs on it and ends no others"
    UNATTACHED_PINNED = "a plan that removes a volume names the runs that it ends first, and no other run mounts the volume"
    RULES_PINNED = "a destructive plan has a predicate for the rules that it was judged by"
    LEDGER_PINNED = "a plan has a predicate for its ledger"
    RULES_APPLIED_LAST = "a plan is judged by the rules applied last"
    DIGEST_RIGHT = "the digest of a plan matches its content"


@dataclass(frozen=True, slots=True)
class Violation:
    """One break of one invariant; `detail` says where and how."""

    invariant: Invariant
    detail: str

    @property
    def sentence(self) -> str:
        return f"{self.detail}, but {self.invariant}"


# The ledger as it will be called, put together from the steps of the plan alone.
# Every check looks at it by the names that the tree uses.


def earlier_names(plan: Plan) -> dict[ResourceKey, ResourceKey]:
    """What the plan renames, also where it is held or left for another plan: old by new name."""
    return {step.resource: name_before(step) for step in moves(plan)}


def renamed(plan: Plan) -> dict[ResourceKey, ResourceKey]:
    """What `moved:` must have said for the plan to rename it: new by old name, a sweep as a whole."""
    pairs: dict[ResourceKey, ResourceKey] = {}
    for step in moves(plan):
        before, after = name_before(step), step.resource
        if sweep := step.arguments.get("sweep"):
            before = ResourceKey(after.kind, sweep)
            after = ResourceKey(after.kind, split_element(after.name)[0])
        pairs[before] = after
    return pairs


def renamed_rows(plan: Plan, live: Live) -> Mapping[ResourceKey, LiveResource]:
    """The ledger's rows by the names that they get."""
    steps = list(moves(plan))
    if not steps:
        return live.resources
    pairs = {name_before(step): step.resource for step in steps}
    renames = Renames({**pairs, **renamed(plan)})
    given_up = {after: before for before, after in pairs.items()}
    rows: dict[ResourceKey, LiveResource] = {}
    for key, row in live.resources.items():
        # Whoever has a name that is given to another takes the one that becomes free.
        now = pairs[key] if key in pairs else given_up.get(key, key)
        parent, element = split_element(now.name)
        named = (
            row
            if now == key
            else replace(row, key=now, parent=parent if element else "", element=element)
        )
        rows[now] = _with_references(named, renames)
    return rows


def name_before(step: Step) -> ResourceKey:
    """Return the name that a renaming takes away."""
    return ResourceKey(step.resource.kind, str(step.arguments["from"]))


def host_called(name: str, before: str, after: str) -> str:
    """
    Name a host whose fleet is called `after` instead of `before`.

    Those called by their fleet and number are renamed with it; what has a name of its own, or is
    of another fleet, keeps it.
    """
    number = name.removeprefix(f"{before}-")
    return f"{after}-{number}" if number != name and number.isdigit() else name


def moves(plan: Plan) -> Iterator[Step]:
    """Yield each renaming, also where it is held or left for another plan."""
    changes = _all_changes(plan)
    return (step for change in changes for step in change.steps if step.verb == Verb.RESOURCE_MOVE)


def _with_references(row: LiveResource, renames: Renames) -> LiveResource:
    if not row.document or not renames.may_be_in(row.document):
        return row
    document = row.parsed
    renamed = rename_references(row.key.kind, document, renames)
    if renamed == document:
        return row
    digest, execution = digests_of(row.key.kind, renamed)
    return replace(
        row,
        document=json.dumps(renamed),
        # What has none was never made in whole, under whatever name.
        digest=digest if row.digest else "",
        execution_digest=execution if row.digest else "",
        own_digest=digest if row.own_digest == row.digest else row.own_digest,
    )


def _all_changes(plan: Plan) -> Iterator[Change]:
    yield from plan.changes
    yield from (held.change for held in plan.held)
    yield from (deferred.change for deferred in plan.deferred)

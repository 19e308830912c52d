"""
What must still hold when a plan is carried out.

A plan pins what it touches and nothing else: scheduling goes on meanwhile, and an unrelated
change does not make it stale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fleetform.model.live import Live, LiveResource, changed_rows
from fleetform.model.plan import ARCHIVED, Change, FieldChange, Plan, Predicate, Step, row_key_of
from fleetform.model.predicates import AtWork, RowFacts, unmet
from fleetform.model.redaction import Seal
from fleetform.model.verbs import ENDS, ENDS_USE, Verb
from fleetform.model.volume import mounted_volumes
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import PlanDraft
from fleetform.plan.impact import ends_with, hosts_ended
from fleetform.plan.phase import Phase, documents_at_work, documents_of, phase
from fleetform.spec.canonical import canonical_json
from fleetform.spec.desired import ResourceKey, Rules

__all__ = ["Failing", "failing", "predicates_of", "undone"]


def predicates_of(draft: PlanDraft) -> tuple[Predicate, ...]:
    """The ledger first, then by key of the change."""
    found: list[Predicate] = []
    # Before the first apply there is no ledger to name; that its resources are absent says all.
    if draft.live.ledger_id:
        found.append(Predicate("ledger", None, f"{draft.live.ledger_id}/{draft.live.epoch}"))
    if any(_is_judged(key, change) for key, change in draft.changes.items()):
        environment = ResourceKey("environment", draft.desired.environment.name)
        found.append(Predicate("rules", environment, canonical_json(draft.rules.document())))
    goes = any(key.kind == "volume" and _ends_use(one) for key, one in draft.changes.items())
    stopped = _users_stopped(draft) if goes else {}
    for key in sorted(draft.changes):
        if key.kind == "environment":
            continue  # Rules have no row of their own; they are pinned by what they say.
        change = draft.changes[key]
        row_key = draft.row_key(change)
        # The ledger knows it by the name that it had when it was read.
        known_as = draft.moves.before.get(row_key, row_key)
        if change.uid:
            found.append(Predicate("generation", known_as, str(change.generation)))
        if known_as != row_key:
            # A tombstone that has this name gives way.
            found.append(Predicate("absent", row_key, ARCHIVED))
        if not change.uid or change.replaces:
            found.append(Predicate("absent", key))
        if row_key in draft.not_started:
            found.append(Predicate("run-not-started", known_as))
        found += [
            Predicate("left", key, step.arguments["returns"])
            for step in change.steps
            # What the same change lets go is pinned by its row.
            if step.arguments.get("returns", change.uid) != change.uid
        ]
        if key.kind == "fleet" and (change.destructive or _ends_use(change)):
            found.append(Predicate("at-work", known_as, _at_work(draft, change, known_as).text))
        if key.kind == "volume" and _ends_use(change):
            users = canonical_json(sorted(stopped.get(key.name, ())))
            found.append(Predicate("unattached", known_as, users))
    return tuple(found)


def _ends_use(change: Change) -> bool:
    """Tell whether it removes what a run may be using, destructive or not."""
    return any(step.verb in ENDS_USE for step in change.steps)


def _users_stopped(draft: PlanDraft) -> dict[str, set[str]]:
    """By volume: runs that the plan ends before it goes, by the names that the ledger knows."""
    found: dict[str, set[str]] = {}
    for change in draft.changes.values():
        for step in change.steps:
            if step.verb == Verb.RUN_STOP:
                known_as = draft.moves.before.get(step.resource, step.resource)
                for document in documents_of(draft.live.resources[step.resource]):
                    for volume in mounted_volumes(document):
                        found.setdefault(volume, set()).add(known_as.name)
    return found


def _at_work(draft: PlanDraft, change: Change, known_as: ResourceKey) -> AtWork:
    """Runs that would end with it, by the names of the ledger; a run that begins later is not among them."""
    runs = {ResourceKey("run", one.run) for one in draft.live.work if ends_with(draft, change, one)}
    return AtWork(
        frozenset(draft.known_as(run).name for run in runs),
        frozenset(_earlier(host, change.key, known_as) for host in hosts_ended(draft, change)),
    )


def _earlier(host: str, fleet: ResourceKey, known_as: ResourceKey) -> str:
    """Hosts that are called by their fleet and number are renamed with it."""
    number = host.removeprefix(f"{fleet.name}-")
    return f"{known_as.name}-{number}" if number != host and number.isdigit() else host


def _is_judged(key: ResourceKey, change: Change) -> bool:
    """
    Tell whether rules decided about it, or are what it changes.

    Rules that somebody has tightened since hold for a plan that is still to be entered; all other
    plans may be applied under any.
    """
    return change.destructive or key.kind == "environment"


# What has become of a plan since it was made: which of its predicates fail, and whether its outcome
# still stands.
# The ledger asks the same in the transaction that enters a plan, and its word counts. This is for
# people, before they are asked to agree: it says what is different, and not only that it is.


@dataclass(frozen=True, slots=True)
class Failing:
    """
    One predicate that holds no more.

    Attributes:
        key: What it is about; None for the ledger as a whole.
        detail: What is there instead, to go on a sentence with: `has started`.
        fields: What changed of its document since, sealed.
    """

    key: ResourceKey | None
    detail: str
    fields: tuple[FieldChange, ...] = ()


def failing(plan: Plan, live: Live) -> tuple[Failing, ...]:
    """
    Compare a plan's predicates with the rows of now, in their order.

    A resource that fails twice is named once: what came first says enough. A plan whose changes are
    all held has no predicates: what it holds must be as it was, or its reasons are those of the past.
    """
    if plan.ledger_id and (plan.ledger_id, plan.epoch) != (live.ledger_id, live.epoch):
        return (
            Failing(
                None,
                f"the plan was computed from ledger {plan.ledger_id} of epoch {plan.epoch}, and this is"
                f" {live.ledger_id or 'none'} of epoch {live.epoch}",
            ),
        )
    found: dict[ResourceKey, Failing] = {}
    held = [one.change for one in plan.held] if plan.is_empty else []
    planned = {row_key_of(change): change for change in (*plan.changes, *held)}
    for predicate in (*plan.predicates, *_pins(held)):
        if predicate.resource is not None and predicate.resource not in found:
            one = _failing(predicate, predicate.resource, live, planned)
            if one is not None:
                found[predicate.resource] = one
    return tuple(found.values())


def _pins(held: Iterable[Change]) -> Iterator[Predicate]:
    for change in held:
        if change.uid:
            yield Predicate("generation", row_key_of(change), str(change.generation))
        elif change.key.kind != "environment":
            yield Predicate("absent", change.key, ARCHIVED)


def _failing(
    predicate: Predicate,
    key: ResourceKey,
    live: Live,
    planned: dict[ResourceKey, Change],
) -> Failing | None:
    change = planned.get(key)
    found = unmet(predicate, _LiveFacts(live), "" if change is None else change.uid)
    if found is None:
        return None
    fields: tuple[FieldChange, ...] = ()
    if found.row is not None:
        fields = _changed_since(change, live.resources[key], Seal(live.environment_uid))
    return Failing(key, found.detail, fields)


class _LiveFacts:
    """Fills `predicates.Facts` with what was read of the ledger."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def ledger(self) -> str:
        return f"{self._live.ledger_id}/{self._live.epoch}"

    def rules(self) -> Rules:
        return self._live.rules or Rules()

    def row(self, key: ResourceKey) -> RowFacts | None:
        row = self._live.resources.get(key)
        if row is None:
            return None
        return RowFacts(row.uid, row.generation, row.archived, phase(row) is not Phase.WAITING)

    def work_on(self, fleet: str) -> Iterator[tuple[str, Iterable[str]]]:
        return ((one.run, one.hosts) for one in self._live.work if one.fleet == fleet)

    def mounting(self, volume: str) -> Collection[str]:
        return {
            key.name
            for key, row in changed_rows(self._live.resources).items()
            if key.kind == "run"
            for document in documents_at_work(row)
            if volume in mounted_volumes(document)
        }

    def retained(self) -> Collection[str]:
        return {one.uid for one in self._live.left}


def _changed_since(change: Change | None, row: LiveResource, seal: Seal) -> tuple[FieldChange, ...]:
    if change is None or change.before is None or not row.document:
        return ()
    kind = change.key.kind
    now = seal.value(kind, "", row.parsed)
    return changed_fields(kind, change.before, now)


# -- a plan that was applied ---------------------------------------------------------------


def undone(plan: Plan, live: Live) -> tuple[ResourceKey, ...]:
    """Name what a plan that was carried out has made and that is otherwise by now, by key."""
    return tuple(dict.fromkeys(sorted(_undone(plan, live))))


def _undone(plan: Plan, live: Live) -> Iterator[ResourceKey]:
    # Of several steps on one resource the last says how it was left.
    last = {step.resource: step for change in plan.changes for step in change.steps}
    for key, step in last.items():
        if not _stands(step, live):
            yield key


def _stands(step: Step, live: Live) -> bool:
    if step.verb == Verb.RULES_SET:
        return (live.rules or Rules()) == Rules.of(step.arguments["rules"])
    row = live.resources.get(step.resource)
    if step.verb in ENDS:
        return row is None or row.archived
    if step.verb == Verb.RESOURCE_MOVE:
        return True  # It has left this name; under its new one it is another step's matter.
    if row is None or row.archived:
        return False
    digest = step.arguments.get("digest")
    return digest is None or row.digest == digest

"""
Plans in the ledger: entered once, resumed after a crash, and refused when the ledger has moved.

An apply is one entry of a plan. Its operations are the plan's steps: `planned`, `intended` (it may
have changed the actual state), then `done` or `failed`, or `dropped` if the apply ended without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fleetform.model.account import owner_of
from fleetform.model.apply import Accepted
from fleetform.model.ledger import LedgerStatus
from fleetform.model.plan import Plan, Predicate, Step, row_key_of
from fleetform.model.ports import Ids, StalePlan
from fleetform.model.predicates import RowFacts, unmet
from fleetform.model.redaction import fingerprint
from fleetform.model.verbs import Verb
from fleetform.model.volume import mounted_volumes
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.store.freeze import require_permitted, rules_applied
from fleetform.store.history import pack, unpack
from fleetform.store.resources import drop_making_volumes, mark_interrupted
from fleetform.store.rollouts import closings_of
from fleetform.store.volumes import uids_left
from fleetform.views.plan.summary import change_summary

if TYPE_CHECKING:
    from fleetform.store.database import Transaction
    from fleetform.store.statements import Statements

__all__ = ["accept", "done_keys", "finish_apply", "unfinished_apply"]


def accept(
    transaction: Transaction,
    plan: Plan,
    body: bytes,
    *,
    who: str,
    now_ms: int,
    ids: Ids,
    owner: str = "",
) -> Accepted:
    """See `model.ports.Ledger.accept`."""
    known = transaction.one(
        "SELECT uid, state FROM applies WHERE plan_digest = ? ORDER BY number DESC LIMIT 1",
        (plan.digest,),
    )
    if known is not None and known[1] == "running":
        return Accepted(known[0], "resumed", done_keys(transaction, known[0]))
    if known is not None and known[1] == "done":
        # The same plan may be applied again if its outcome was undone since: then it is a new apply. A plan in a file is
        # applied once.
        if plan.kept is not None or _failures(transaction, plan, frozenset()):
            return Accepted(known[0], "already-applied", done_keys(transaction, known[0]))
        known = None
    require_permitted(transaction, plan, now_ms)
    if known is not None:
        done = done_keys(transaction, known[0])
        if done:
            return _reopen(transaction, plan, known[0], done, now_ms)
    failures = _failures(transaction, plan, frozenset())
    if failures:
        raise StalePlan(failures)
    owner = owner or owner_of(who)
    return _enter(transaction, plan, body, who=who, owner=owner, now_ms=now_ms, uid=ids.uid())


def _enter(
    transaction: Transaction,
    plan: Plan,
    body: bytes,
    *,
    who: str,
    owner: str,
    now_ms: int,
    uid: str,
) -> Accepted:
    transaction.execute(
        "INSERT INTO plans (digest, created_at_ms, who, tree_commit, summary, body)"
        # What it asked of clouds is in no digest: this is the answer that was approved.
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET body = excluded.body",
        (plan.digest, now_ms, who, plan.commit, change_summary(plan), pack(body)),
    )
    transaction.execute(
        "INSERT INTO applies (uid, plan_digest, state, who, owner, tree_commit, started_at_ms)"
        " VALUES (?, ?, 'running', ?, ?, ?, ?)",
        (uid, plan.digest, who, owner, plan.commit, now_ms),
    )
    closings = closings_of(plan)
    transaction.many(
        "INSERT INTO operations (apply_uid, key, verb, resource_kind, resource_name, state, closes)"
        " VALUES (?, ?, ?, ?, ?, 'planned', ?)",
        (
            (uid, step.key, step.verb, *step.resource, closings.get(step.key, ""))
            for step in plan.steps
        ),
    )
    _mark(transaction, plan.steps, uid)
    transaction.execute(
        "UPDATE meta SET status = ? WHERE status = ?", (LedgerStatus.READY, LedgerStatus.EMPTY)
    )
    transaction.log(
        "plan.accepted",
        now_ms,
        f"{who or 'an unknown user'} began to apply plan {plan.digest[:12]}",
    )
    return Accepted(uid, "new")


def _reopen(
    transaction: Transaction, plan: Plan, uid: str, done: frozenset[str], now_ms: int
) -> Accepted:
    """Resume an apply that ended early: what it has not done must still hold."""
    touched = frozenset(key for step in plan.steps if step.key in done for key in _touched(step))
    failures = [
        *_failures(transaction, plan, touched),
        *_changed_since(transaction, uid, touched & _relied_on(plan, done)),
    ]
    if failures:
        raise StalePlan(failures)
    transaction.execute(
        "UPDATE applies SET state = 'running', finished_at_ms = NULL WHERE uid = ?", (uid,)
    )
    transaction.execute(
        "UPDATE operations SET state = 'planned', error = '' WHERE apply_uid = ?"
        " AND state <> 'done'",
        (uid,),
    )
    _mark(transaction, (step for step in plan.steps if step.key not in done), uid)
    transaction.log("plan.resumed", now_ms, f"plan {plan.digest[:12]} is being applied again")
    return Accepted(uid, "resumed", done)


def _relied_on(plan: Plan, done: frozenset[str]) -> set[ResourceKey]:
    """Return the resources that the remaining steps change, and those of the steps that they need."""
    steps = {step.key: step for step in plan.steps}
    left = [step for step in plan.steps if step.key not in done]
    needed = (steps[key] for step in left for key in step.needs if key in steps)
    return {key for step in (*left, *needed) for key in _touched(step)}


def _changed_since(
    transaction: Transaction, uid: str, relied_on: frozenset[ResourceKey]
) -> Iterator[str]:
    """
    Say which of these another apply has changed after this one.

    No predicate of the plan says how its own steps leave a resource, so no other apply may have changed it in between. A
    later rename counts for all resources of its kind: operations contain the new name only.
    """
    later = transaction.execute(
        "SELECT DISTINCT o.resource_kind, o.resource_name, o.verb, a.uid"
        " FROM operations o JOIN applies a ON a.uid = o.apply_uid"
        " WHERE a.number > (SELECT number FROM applies WHERE uid = ?)"
        " AND o.state IN ('done', 'failed') ORDER BY a.uid, o.resource_kind, o.resource_name",
        (uid,),
    ).fetchall()
    for kind, name, verb, by in later:
        key = ResourceKey(kind, name)
        if verb == Verb.RESOURCE_MOVE and any(one.kind == kind for one in relied_on):
            yield f"{key} was renamed since by apply {by[:12]}"
        elif key in relied_on:
            yield f"{key} was changed since the plan by apply {by[:12]}"


def _mark(transaction: Transaction, steps: Iterable[Step], uid: str) -> None:
    transaction.many(
        "UPDATE resources SET operation = ? WHERE kind = ? AND name = ?",
        {(uid, *key): None for step in steps for key in _touched(step)},
    )


def _touched(step: Step) -> tuple[ResourceKey, ...]:
    """Return the key of a step's row, and the one that the row has until it is renamed."""
    if step.verb != Verb.RESOURCE_MOVE:
        return (step.resource,)
    return (step.resource, ResourceKey(step.resource.kind, step.arguments["from"]))


def done_keys(connection: Transaction | Statements, apply_uid: str) -> frozenset[str]:
    rows = connection.execute(
        "SELECT key FROM operations WHERE apply_uid = ? AND state = 'done'", (apply_uid,)
    )
    return frozenset(key for (key,) in rows)


def unfinished_apply(connection: Statements) -> tuple[Accepted, bytes] | None:
    row = connection.execute(
        "SELECT a.uid, p.body FROM applies a JOIN plans p ON p.digest = a.plan_digest"
        " WHERE a.state = 'running' ORDER BY a.number LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    uid, body = row
    return Accepted(uid, "resumed", done_keys(connection, uid)), unpack(body)


def finish_apply(
    transaction: Transaction, apply_uid: str, *, state: str, summary: str, now_ms: int
) -> None:
    """End an apply; its remaining steps are dropped and no longer block other applies."""
    assert state in {"done", "failed", "interrupted"}, state
    ended = transaction.one(
        "UPDATE applies SET state = ?, summary = ?, finished_at_ms = ?"
        " WHERE uid = ? AND state = 'running' RETURNING plan_digest",
        (state, summary, now_ms, apply_uid),
    )
    if ended is None:
        return
    # A step that has begun and has no outcome is left to the next plan, like a failed one.
    mark_interrupted(transaction, apply_uid)
    transaction.execute(
        "UPDATE operations SET state = 'dropped' WHERE apply_uid = ?"
        " AND state IN ('planned', 'intended')",
        (apply_uid,),
    )
    drop_making_volumes(transaction, apply_uid)
    transaction.execute("UPDATE resources SET operation = '' WHERE operation = ?", (apply_uid,))
    verb = {"done": "was applied", "failed": "was applied in part"}.get(state, "was interrupted")
    sentence = f"plan {ended[0][:12]} {verb}" + (f": {summary}" if summary else "")
    kind = "plan.applied" if state == "done" else f"plan.{state}"
    transaction.log(kind, now_ms, sentence)


# -- what must still hold -----------------------------------------------------------------


def _failures(
    transaction: Transaction, plan: Plan, passed_over: frozenset[ResourceKey]
) -> Sequence[str]:
    """Say what no longer holds of a plan; empty when it may be applied."""
    meta = transaction.one("SELECT environment_uid, ledger_id, epoch, status, note FROM meta")
    assert meta is not None
    environment_uid, ledger_id, epoch, status, note = meta
    if plan.environment_fingerprint != fingerprint(environment_uid):
        return [f"the plan is for another environment, whose name was {plan.environment_name}"]
    # A plan from before the first apply names no ledger; its predicates say that its resources are absent.
    if plan.ledger_id and (plan.ledger_id, plan.epoch) != (ledger_id, epoch):
        computed = f"the plan was computed from ledger {plan.ledger_id} of epoch {plan.epoch}"
        return [f"{computed}, and this is {ledger_id} of epoch {epoch}"]
    if status == LedgerStatus.RECOVERING:
        return [f"the ledger is recovering{f': {note}' if note else ''}"]
    uids = {row_key_of(change): change.uid for change in plan.changes}
    facts = _LedgerFacts(transaction, f"{ledger_id}/{epoch}")
    failures = [
        sentence
        for predicate in plan.predicates
        if predicate.resource not in passed_over and (sentence := _failure(predicate, facts, uids))
    ]
    return [*failures, *_conflicts(transaction, plan)]


def _failure(predicate: Predicate, facts: _LedgerFacts, uids: Mapping[ResourceKey, str]) -> str:
    key = predicate.resource
    found = unmet(predicate, facts, "" if key is None else uids.get(key, ""))
    if found is None:
        return ""
    about = "" if key is None else f"{key} "
    was = (
        ""
        if found.row is None
        else f": its generation is {found.row.generation}, and was {predicate.value}"
    )
    return f"{about}{found.detail}{was}"


class _LedgerFacts:
    """Fills `predicates.Facts` with rows, within the transaction that enters a plan."""

    def __init__(self, transaction: Transaction, ledger: str) -> None:
        self._transaction = transaction
        self._ledger = ledger
        self._mounting: Mapping[str, Collection[str]] | None = None

    def ledger(self) -> str:
        return self._ledger

    def rules(self) -> Rules:
        return rules_applied(self._transaction)

    def row(self, key: ResourceKey) -> RowFacts | None:
        row = self._transaction.one(
            "SELECT s.uid, s.generation, s.archived, a.state FROM resources s"
            " LEFT JOIN runs r ON r.uid = s.uid"
            " LEFT JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
            " WHERE s.kind = ? AND s.name = ?",
            key,
        )
        if row is None:
            return None
        uid, generation, archived, attempt = row
        # A run that waits for its next attempt has nothing to lose: what it had is over.
        return RowFacts(uid, generation, bool(archived), attempt not in {None, "waiting"})

    def work_on(self, fleet: str) -> Iterator[tuple[str, Iterable[str]]]:
        rows = self._transaction.execute(
            "SELECT DISTINCT r.name, i.name FROM allocations a"
            " JOIN instances i ON i.uid = a.instance_uid"
            " JOIN runs r ON r.uid = a.run_uid WHERE i.fleet = ?",
            (fleet,),
        )
        return ((run, (host,)) for run, host in rows)

    def mounting(self, volume: str) -> Collection[str]:
        if self._mounting is None:
            self._mounting = _attached(self._transaction)
        return self._mounting.get(volume, ())

    def retained(self) -> Collection[str]:
        return uids_left(self._transaction)


def _attached(transaction: Transaction) -> Mapping[str, Collection[str]]:
    """Name the running runs by the volume that they have mounted."""
    found: dict[str, set[str]] = {}
    for name, document in transaction.execute(
        "SELECT r.name, r.document FROM runs r"
        " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        # A run that waits for its next attempt has nothing mounted.
        " WHERE r.final = 0 AND a.state <> 'waiting' ORDER BY r.number"
    ):
        for volume in mounted_volumes(document):
            found.setdefault(volume, set()).add(name)
    return found


def _conflicts(transaction: Transaction, plan: Plan) -> Sequence[str]:
    """Name the resources of the plan that an unfinished apply is about to change."""
    # A resource that is being renamed is marked under the name that it still has.
    marked = transaction.execute(
        "SELECT kind, name, operation FROM resources WHERE operation <> ''"
    ).fetchall()
    opened = {ResourceKey(kind, name): uid for kind, name, uid in marked} | {
        ResourceKey(kind, name): uid
        for kind, name, uid in transaction.execute(
            "SELECT resource_kind, resource_name, apply_uid FROM operations"
            " INDEXED BY operations_open WHERE state IN ('planned', 'intended')"
        )
    }
    if not opened:
        return ()
    touched = dict.fromkeys(key for step in plan.steps for key in _touched(step))
    return [
        f"{key} is being changed by apply {opened[key][:12]}" for key in touched if key in opened
    ]

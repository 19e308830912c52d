"""
Rebuilds a lost or older ledger from the hosts and the configuration.

Hosts say what ran: each record names its run and the digest of what was executed. The configuration says what that was,
if its digest is the same. A run that neither proves is recorded as `unknown`, and never as one that is still to be run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetform.agents.protocol.states import JobState
from fleetform.model.decision import Finish
from fleetform.model.recovery import Evidence, Recovered
from fleetform.model.run import RunState, RunUid
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.names import split_element
from fleetform.store.database import Transaction, to_json
from fleetform.store.host_adoption import adopt_hosts
from fleetform.store.hosts import commit_host
from fleetform.store.observations import read_known_runs
from fleetform.store.rebuild import interrupt_applies, judge_runs, put_records
from fleetform.store.records import commit_records
from fleetform.store.resources import (
    Context,
    ResourceRow,
    archive_runs,
    put_resources,
    resource_uid,
)
from fleetform.store.runs import list_runs, refresh_runs
from fleetform.store.transitions import commit_transitions

if TYPE_CHECKING:
    from fleetform.agents.protocol.messages import JobRecord
    from fleetform.model.plan import Step

__all__ = ["adopt_evidence"]


def adopt_evidence(
    context: Context, evidence: Evidence, steps: Mapping[str, Step], *, mark_missing: bool
) -> tuple[Recovered, ...]:
    """
    Write what the evidence proves into the ledger; doing so twice is the same as once.

    Args:
        context: Of no apply.
        evidence: What the hosts and the configuration say.
        steps: How the configuration would create each declared fleet, by its name.
        mark_missing: Runs of the configuration without a row become `unknown`: this ledger may have
            known them.
    """
    interrupt_applies(context.transaction, now_ms=context.now_ms)
    found = adopt_hosts(context, evidence, steps)
    found += _adopt_volumes(context, evidence)
    found += _adopt_runs(context, evidence, _adopt_jobs(context, evidence))
    if not evidence.is_complete:
        unproven = [*_mark_unproven(context), *_mark_redeclared(context, evidence)]
        names = {one.name for one in unproven}
        found = [one for one in found if one.kind != "run" or one.name not in names] + unproven
    if mark_missing:
        found += _mark_missing(context, evidence)
    return tuple(found)


# -- volumes --------------------------------------------------------------------------------


def _adopt_volumes(context: Context, evidence: Evidence) -> list[Recovered]:
    found = []
    for name, volume in sorted(evidence.volumes.items()):
        key = ResourceKey("volume", name)
        if not resource_uid(context.transaction, key):
            _put_resource(context.transaction, key, volume.uid, evidence.desired.resources[key])
        found.append(Recovered("volume", name, "present", volume.path, "its data is untouched"))
    return found


# -- jobs and runs --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RunEvidence:
    """
    What hosts say about runs, by run uid: what each executed, and on which hosts it was.

    `new` are those without a row in this ledger: they began after it was copied. `alive` are those of which a job may still
    run.
    """

    digests: Mapping[str, str]
    hosts: Mapping[str, Iterable[str]]
    new: AbstractSet[str]
    alive: AbstractSet[str]


def _adopt_jobs(context: Context, evidence: Evidence) -> _RunEvidence:
    """Adopt every record; returns what they say of runs."""
    transaction = context.transaction
    place = {one.uid: one.name for one in evidence.instances}
    names: dict[str, str] = {}
    digests: dict[str, str] = {}
    hosts: dict[str, dict[str, None]] = {}
    alive: set[str] = set()
    for uid, seen in sorted(evidence.hosts.items()):
        for record in seen.records or ():
            _note(record, names, digests)
            hosts.setdefault(record.key.run_uid, {})[place[uid]] = None
            if record.state is not JobState.FINISHED:
                alive.add(record.key.run_uid)
    new = hosts.keys() - read_known_runs(transaction, hosts)
    now_ms = context.now_ms
    adopted: dict[str, None] = {}
    for uid, seen in sorted(evidence.hosts.items()):
        commit_host(transaction, seen, now_ms=now_ms)
        keys = put_records(transaction, uid, seen.records or (), names=names, now_ms=now_ms)
        adopted.update({key.run_uid: None for key in keys})
    judge_runs(transaction, adopted, now_ms=now_ms)
    for uid, seen in sorted(evidence.hosts.items()):
        # Records of jobs that had a row are committed like any others.
        records = seen.records or ()
        commit_records(transaction, uid, records, seen.cursor, snapshot=True, now_ms=now_ms)
    return _RunEvidence({uid: digests.get(uid, "") for uid in hosts}, hosts, new, alive)


def _note(record: JobRecord, names: dict[str, str], digests: dict[str, str]) -> None:
    if record.run_name:
        names[record.key.run_uid] = record.run_name
    if record.execution_digest:
        digests[record.key.run_uid] = record.execution_digest


def _adopt_runs(
    context: Context, evidence: Evidence, run_evidence: _RunEvidence
) -> list[Recovered]:
    found = []
    for name, uids in sorted(_by_name(context.transaction, run_evidence.digests).items()):
        uid = _newest(context, name, uids, run_evidence)
        note = _put_run(context, name, uid, run_evidence.digests.get(uid, ""), evidence)
        state = context.transaction.one("SELECT state FROM runs WHERE uid = ?", (uid,))
        assert state is not None
        where = ", ".join(run_evidence.hosts.get(uid, ())) or "this ledger"
        found.append(Recovered("run", name, state[0], f"records on {where}", note))
    return found


def _by_name(transaction: Transaction, digests: Mapping[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for uid in sorted(digests):
        row = transaction.one("SELECT name FROM runs WHERE uid = ?", (uid,))
        assert row is not None, f"run {uid} was adopted"
        names.setdefault(row[0], []).append(uid)
    return names


class _Claimant(NamedTuple):
    """A run that may be the one that its name means; the least is."""

    is_unproven: bool
    is_overtaken: bool
    is_final: int
    began_before: int
    uid: str


_OVERTAKEN = Finish(
    RunState.STOPPED, "superseded", "another run of the same name started on a host since"
)
"""No job of it runs. A host that hears of it later hears of its end."""


def _newest(context: Context, name: str, uids: Sequence[str], run_evidence: _RunEvidence) -> str:
    """
    Choose which run of a name people mean, and unlist the others.

    A run that is not over comes before one that is, then the one that began last. A run without evidence comes after any
    other. A run of this ledger comes after one that it did not know, unless a host still runs it: the unknown one began after
    the ledger was copied, also if the row was entered after the copy was restored.
    """
    transaction = context.transaction
    rows = transaction.execute(
        "SELECT uid, final, cause = ?3, coalesce(started_at_ms, submitted_at_ms) FROM runs"
        " WHERE name = ?1 AND (uid IN (SELECT value FROM json_each(?2))"
        " OR uid IN (SELECT uid FROM resources WHERE kind = 'run' AND name = ?1))",
        (name, to_json(list(uids)), NO_EVIDENCE),
    ).fetchall()
    has_new = not run_evidence.new.isdisjoint(uids)
    newest, *others = sorted(
        _Claimant(
            bool(unproven),
            has_new and uid not in run_evidence.new | run_evidence.alive,
            final,
            -began,
            uid,
        )
        for uid, final, unproven, began in rows
    )
    list_runs(transaction, [one.uid for one in others], listed=False)
    commit_transitions(
        transaction,
        [(RunUid(one.uid), _OVERTAKEN) for one in others if one.is_overtaken and not one.is_final],
        now_ms=context.now_ms,
        ids=context.ids,
    )
    return newest.uid


def _put_run(context: Context, name: str, uid: str, digest: str, evidence: Evidence) -> str:
    """Make this run the one that its name means; returns what the next plan does about it."""
    transaction, key = context.transaction, ResourceKey("run", name)
    if resource_uid(transaction, key) == uid:
        return "known to this ledger"
    declared = evidence.desired.resources.get(key)
    same = declared is not None and digest in {"", declared.execution_digest}
    _put_resource(transaction, key, uid, declared if same else None, execution_digest=digest)
    if same:
        assert declared is not None
        return _describe(context, uid, declared, proved=bool(digest))
    if declared is not None:
        return "it executed another document than the configuration declares"
    if key in evidence.desired.broken:
        return "its document in the configuration is invalid"
    if key in evidence.desired.beyond:
        return "its document in the configuration is not supported yet"
    return _archive(transaction, name, uid)


def _describe(context: Context, uid: str, declared: Declared, *, proved: bool) -> str:
    """Give a run the document whose digest it executed, and say what is left unproven."""
    transaction = context.transaction
    nodes = declared.document.get("nodes", 1)
    row = transaction.one(
        "SELECT r.final, (SELECT count(*) FROM jobs j WHERE j.run_uid = r.uid"
        " AND j.attempt = r.attempt) FROM runs r WHERE r.uid = ?",
        (uid,),
    )
    assert row is not None
    final, ranks = row
    transaction.execute(
        "UPDATE runs SET document = ?, execution_digest = ?, parent = ?, element = ?, type = ?,"
        " nodes = ?, stale = ? WHERE uid = ?",
        (
            to_json(declared.document),
            declared.execution_digest,
            declared.parent,
            declared.element,
            declared.type,
            nodes,
            int(not proved),
            uid,
        ),
    )
    if final and ranks < nodes:
        transaction.execute(
            "UPDATE runs SET state = ?, cause = ?, message = ? WHERE uid = ?",
            (
                RunState.UNKNOWN,
                NO_EVIDENCE,
                f"only {ranks} of its {nodes} ranks are known to a host",
                uid,
            ),
        )
        return _cure(declared.key.name)
    if not final:
        refresh_runs(transaction, (uid,), now_ms=context.now_ms)
        return "as the configuration declares it: it continues"
    if not proved:
        return "its host does not know what it executed: its result is marked outdated, and it does not run again"
    return "as the configuration declares it: not run again"


def _archive(transaction: Transaction, name: str, uid: str) -> str:
    row = transaction.one("SELECT final FROM runs WHERE uid = ?", (uid,))
    if row is None or not row[0]:
        return "removed from the configuration, and still running"
    list_runs(transaction, [uid], listed=False)
    archive_runs(transaction, [name])
    return "removed from the configuration: archived"


# -- what nothing proves --------------------------------------------------------------------


def _mark_missing(context: Context, evidence: Evidence) -> list[Recovered]:
    found = []
    for key, declared in sorted(evidence.desired.resources.items()):
        if key.kind != "run" or resource_uid(context.transaction, key):
            continue
        _put_unknown(context, declared)
        found.append(
            Recovered("run", key.name, RunState.UNKNOWN, "no host has a record", _cure(key.name))
        )
    return found


_PUT_BACK = "its host's records are as old as the ledger"


def _mark_unproven(context: Context) -> list[Recovered]:
    """
    Put an end to the runs that may have run since ledger and hosts were copied.

    What a host says is at work, or how it ended, is proof. That a run waits, or is prepared, was so
    when the copy was taken.
    """
    rows = context.transaction.execute(
        "SELECT r.uid, r.name FROM runs r WHERE r.final = 0 AND NOT EXISTS (SELECT 1 FROM jobs j"
        " WHERE j.run_uid = r.uid AND j.attempt = r.attempt AND (j.state IN ('running', 'cleaning')"
        " OR j.state = 'finished' AND j.cause <> 'never_started')) ORDER BY r.number"
    ).fetchall()
    ends = [
        (
            RunUid(uid),
            Finish(
                RunState.STOPPED,
                NO_EVIDENCE,
                "ledger and hosts were restored from older copies, so it may have run since;"
                f" {_cure(name)}",
            ),
        )
        for uid, name in rows
    ]
    commit_transitions(context.transaction, ends, now_ms=context.now_ms, ids=context.ids)
    context.transaction.many(
        "UPDATE runs SET state = ? WHERE uid = ?", [(RunState.UNKNOWN, uid) for uid, _ in rows]
    )
    return [Recovered("run", name, RunState.UNKNOWN, _PUT_BACK, _cure(name)) for _, name in rows]


def _mark_redeclared(context: Context, evidence: Evidence) -> list[Recovered]:
    """Write down as unknown what the configuration would have run again: it may have, since the copy."""
    found = []
    for key, declared in sorted(evidence.desired.resources.items()):
        row = context.transaction.one(
            "SELECT s.execution_digest, s.rerun_mark FROM resources s JOIN runs r ON r.uid = s.uid"
            " WHERE s.kind = ? AND s.name = ? AND r.final = 1 AND r.cause <> ?",
            (*key, NO_EVIDENCE),
        )
        if key.kind != "run" or row is None:
            continue
        if row[0] == declared.execution_digest and declared.document.get("rerun", 0) <= row[1]:
            continue
        context.transaction.execute(
            "UPDATE runs SET listed = 0 WHERE name = ? AND listed = 1", (key.name,)
        )
        _put_unknown(context, declared)
        found.append(Recovered("run", key.name, RunState.UNKNOWN, _PUT_BACK, _cure(key.name)))
    return found


def _put_unknown(context: Context, declared: Declared) -> None:
    """
    Write a run of which nothing is known.

    It is over as far as anybody will ever say, so that it is neither placed nor waited for, and
    a person may have it run again.
    """
    uid = context.ids.uid()
    name = declared.key.name
    context.transaction.execute(
        "INSERT INTO runs (number, uid, name, type, parent, element, state, final, listed, nodes,"
        " cause, message, submitted_at_ms, execution_digest, document)"
        " VALUES ((SELECT coalesce(max(number), 0) + 1 FROM runs), ?, ?, ?, ?, ?, ?, 1, 1, ?, ?,"
        " ?, ?, ?, ?)",
        (
            uid, name, declared.type, declared.parent, declared.element, RunState.UNKNOWN,
            declared.document.get("nodes", 1), NO_EVIDENCE,
            f"the ledger was rebuilt and no host knows whether it ran; {_cure(name)}",
            context.now_ms, declared.execution_digest, to_json(declared.document),
        ),
    )  # fmt: skip
    _put_resource(context.transaction, declared.key, uid, declared)
    context.transaction.log(
        "run.unknown", context.now_ms, f"no host knows whether run {name} ran", declared.key
    )


def _cure(name: str) -> str:
    return f"`fleetform rerun {name}` runs it"


# -- rows -----------------------------------------------------------------------------------


def _put_resource(
    transaction: Transaction,
    key: ResourceKey,
    uid: str,
    declared: Declared | None,
    *,
    execution_digest: str = "",
) -> None:
    """Write a resource's row: as declared, or without a document where nothing proves one."""
    parent, element = (declared.parent, declared.element) if declared else split_element(key.name)
    if not element:
        parent = ""
    document = declared.document if declared else {}
    row = ResourceRow(
        *key, uid,
        declared.type if declared else "task",
        declared.digest if declared else "",
        declared.execution_digest if declared else execution_digest,
        declared.own_digest if declared else "",
        int(bool(document.get("protect", False))),
        parent, element, document.get("rerun", 0), to_json(document),
    )  # fmt: skip
    put_resources(transaction, [row])

"""
Rebuilds a lost or older ledger from the hosts and the configuration.

Hosts say what ran: each record names its run and the digest of what was executed. The configuration says what that was,
if its digest is the same. A run that neither proves is recorded as `unknown`, and never as one that is still to be run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleetform.agents.protocol.states import JobState
from fleetform.model.apply import StepOutcome
from fleetform.model.decision import Finish
from fleetform.model.instance import LOCAL
from fleetform.model.recovery import Evidence, Recovered
from fleetform.model.rollout import EARLY, SURGE
from fleetform.model.run import RunState, RunUid
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.names import split_element
from fleetform.store import fleets
from fleetform.store.database import Transaction, to_json
from fleetform.store.hosts import commit_host, mark_instance
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
    from fleetform.providers.contract.observed import InstanceSeen

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
    found = _adopt_fleets(context, evidence, steps)
    found += _adopt_volumes(context, evidence)
    found += _adopt_runs(context, evidence, _adopt_jobs(context, evidence))
    if not evidence.is_complete:
        unproven = [*_mark_unproven(context), *_mark_redeclared(context, evidence)]
        names = {one.name for one in unproven}
        found = [one for one in found if one.kind != "run" or one.name not in names] + unproven
    if mark_missing:
        found += _mark_missing(context, evidence)
    return tuple(found)


# -- fleets and their hosts -----------------------------------------------------------------


def _adopt_fleets(
    context: Context, evidence: Evidence, steps: Mapping[str, Step]
) -> list[Recovered]:
    found = []
    by_fleet: dict[str, list[InstanceSeen]] = {}
    released = {
        uid
        for (uid,) in context.transaction.execute(
            "SELECT uid FROM instances WHERE state = 'terminated' AND fleet = ''"
        )
    }
    for instance in evidence.instances:
        # A released host stays released, unless the configuration declares its fleet again.
        if instance.uid not in released or instance.fleet in steps:
            by_fleet.setdefault(instance.fleet, []).append(instance)
    for fleet, instances in sorted(by_fleet.items()):
        numbers = _numbers(context.transaction, fleet, instances)
        for instance in instances:
            _put_instance(context, instance, numbers[instance.uid])
        note = _put_fleet(context, fleet, {*numbers.values()}, steps.get(fleet))
        hosts = ", ".join(one.name for one in instances)
        found.append(Recovered("fleet", fleet, "present", f"hosts {hosts}", note))
        for instance in instances:
            answers = instance.uid in evidence.hosts
            found.append(
                Recovered(
                    "host",
                    instance.name,
                    "ready" if answers else "lost",
                    "its agent answers" if answers else "declared lost",
                )
            )
    return found


def _put_instance(context: Context, instance: InstanceSeen, number: int) -> None:
    transaction = context.transaction
    has_settled = number < SURGE and instance.name.endswith(EARLY)
    # The instance has the place by now, and the name of that place.
    name = f"{instance.fleet}-{number}" if has_settled else instance.name
    taken = transaction.execute(
        "SELECT uid FROM instances WHERE fleet = ? AND number = ? AND state <> 'terminated'"
        " AND uid <> ?",
        (instance.fleet, number, instance.uid),
    ).fetchall()
    for (uid,) in taken:
        message = f"{instance.name} is now a different instance"
        mark_instance(transaction, uid, state="terminated", message=message, now_ms=context.now_ms)
    transaction.execute(
        "INSERT INTO instances (uid, name, fleet, number, state, address, provider, endpoint,"
        " declared) VALUES (?1, ?2, ?3, ?4, 'provisioning', '127.0.0.1', ?5, ?6, ?7)"
        # A released instance has no fleet.
        " ON CONFLICT (uid) DO UPDATE SET state = 'provisioning', fleet = excluded.fleet,"
        " number = excluded.number, name = excluded.name, message = ''"
        " WHERE instances.state = 'terminated'",
        (
            instance.uid, name, instance.fleet, number, instance.provider,
            to_json(instance.endpoint) if instance.endpoint else "", to_json(instance.declared),
        ),
    )  # fmt: skip


def _numbers(
    transaction: Transaction, fleet: str, instances: Sequence[InstanceSeen]
) -> dict[str, int]:
    """
    Read the numbers of instances from their names, by uid.

    An instance that was created before the host that it replaces left has a number above `SURGE`, or the place of that host
    if that has left; its name is the same in both cases.
    """
    known = dict(
        transaction.execute(
            "SELECT uid, number FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
        )
    )
    found = {one.uid: known[one.uid] for one in instances if one.uid in known}
    places = _places(transaction, fleet)
    for one in instances:
        if one.uid in found or one.name.endswith(EARLY):
            continue
        if one.provider == LOCAL:
            found[one.uid] = _number(one.name, fleet)
        elif one.name in places:
            # A row that no host has answered for, made for this one: it gives way.
            found[one.uid] = places[one.name]
    taken = {*known.values(), *found.values()}
    free = (number for number in itertools.count() if number not in taken)
    for one in instances:
        if one.uid not in found and one.provider != LOCAL:
            # Known by name: any number is as good as the other.
            found[one.uid] = next(free)
            taken.add(found[one.uid])
    for one in instances:
        if one.uid not in found:
            number = _number(one.name.removesuffix(EARLY), fleet)
            found[one.uid] = number + SURGE if number in taken else number
            taken.add(number)
    return found


def _places(transaction: Transaction, fleet: str) -> dict[str, int]:
    """Return the numbers of a fleet's hosts by name."""
    rows = transaction.execute(
        "SELECT name, number FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
    )
    return dict(rows.fetchall())


def _number(name: str, fleet: str) -> int:
    digits = name.removeprefix(f"{fleet}-")
    return int(digits) if digits.isdigit() else 0


def _put_fleet(context: Context, fleet: str, numbers: AbstractSet[int], step: Step | None) -> str:
    """Give the fleet a row if it has none; returns what the next plan does about it."""
    key = ResourceKey("fleet", fleet)
    if resource_uid(context.transaction, key):
        return ""
    wanted = (
        {place["number"] for place in fleets.numbered(context.transaction, step)} if step else set()
    )
    if step is not None and wanted == numbers:
        fleets.begin_make(context, step)
        fleets.finish_write(context, [step], [StepOutcome(step.key)])
        return "as the configuration declares it"
    # Without a digest it differs from whatever is declared, and the next plan shows how.
    context.transaction.execute(
        "INSERT INTO resources (kind, name, uid, type, generation, state, document)"
        " VALUES ('fleet', ?, ?, 'fleet', 1, 'present', '{}')",
        (fleet, context.ids.uid()),
    )
    return (
        "the configuration declares other hosts" if step is not None else "not in the configuration"
    )


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

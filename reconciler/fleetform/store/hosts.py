"""
What is known of instances: a hello, silence, the end.

Another boot or install id is proof that what ran under the old one is dead. How it ended the host
may still know: a result that was written before the reboot is the host's to tell, and what its
records or its events are about to say is not overruled here.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.agents.protocol.host_report import GpuProcess, GpuReport
from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model import figures
from fleetform.model.instance import InstanceState
from fleetform.model.rollout import EXCHANGED_TEXTS
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json
from fleetform.store.observations import heal
from fleetform.store.overrides import end_quarantine
from fleetform.store.runs import refresh_runs, silence_of

if TYPE_CHECKING:
    from fleetform.providers.contract.observed import HostSeen

__all__ = [
    "commit_host",
    "end_unheard",
    "forget_jobs",
    "free_units",
    "last_sign_of_life_ms",
    "lose_jobs",
    "mark_forgotten",
    "mark_instance",
    "note_gpu_processes",
    "outgrown_by",
]


def commit_host(transaction: Transaction, seen: HostSeen, *, now_ms: int) -> tuple[JobKey, ...]:
    """See `model.ports.Ledger.commit_host`."""
    row = transaction.one(
        "SELECT name, state, boot_id, install_id, declared, fleet, seen_at_ms FROM instances"
        " WHERE uid = ? AND state <> 'terminated'",
        (seen.instance_uid,),
    )
    if row is None:
        return ()
    name, state, boot_id, install_id, declared, fleet, heard_at_ms = row
    _write(transaction, seen, state, declared, now_ms)
    # A hello is a look at this host: what it says is what the ledger counts on from now on.
    heal(transaction, ResourceKey("fleet", fleet), part=name)
    lost = _prove_losses(transaction, seen, name, boot_id, install_id, heard_at_ms, now_ms)
    if state != InstanceState.READY:
        _refresh(transaction, seen.instance_uid, now_ms)
        transaction.log("host.ready", now_ms, f"host {name} answers", ResourceKey("fleet", fleet))
    return lost


def _write(
    transaction: Transaction, seen: HostSeen, state: str, declared: str, now_ms: int
) -> None:
    """
    Write identity and capacity; the generation goes up when a placement could notice.

    Capacity is what the fleet declares, else what the host reports.
    """
    report = seen.report
    gpus = to_json([_stored_gpu(gpu) for gpu in report.gpus])
    # Who is leaving goes on leaving; everybody else takes jobs from now on.
    now_state = state if state == InstanceState.TERMINATING else InstanceState.READY
    said: Mapping[str, Any] = json.loads(declared) if declared else {}
    transaction.execute(
        "UPDATE instances SET generation = generation + CASE WHEN"
        " (state, boot_id, cpu_millicores, memory_bytes, disk_bytes, gpus)"
        " <> (?1, ?2, ?3, ?4, ?5, ?6) THEN 1 ELSE 0 END,"
        # A host that has just booted had no chance of a job.
        " idle_since_ms = CASE install_id WHEN '' THEN NULL ELSE idle_since_ms END,"
        " boot_heard_at_ms = CASE boot_id WHEN ?2 THEN boot_heard_at_ms ELSE seen_at_ms END,"
        " agent_account = ?17, accounts = ?18,"
        " state = ?1, boot_id = ?2, cpu_millicores = ?3, memory_bytes = ?4, disk_bytes = ?5,"
        " gpus = ?6, install_id = ?7, machine_id = ?8, seen_at_ms = ?10,"
        " address = CASE ?11 WHEN '' THEN address ELSE ?11 END,"
        " host_key = CASE ?12 WHEN '' THEN host_key ELSE ?12 END,"
        # For whom it makes room is still true of who leaves; what kept it from leaving is over.
        " message = CASE WHEN state = 'terminating' AND message IN (?13, ?14, ?15, ?16)"
        " THEN message ELSE '' END WHERE uid = ?9",
        (
            now_state,
            seen.boot_id,
            _known(said.get("cpu"), report.cpu_millicores),
            _known(said.get("memory"), report.memory_bytes),
            _known(said.get("disk"), report.disk_bytes),
            gpus,
            seen.install_id,
            seen.machine_id,
            seen.instance_uid,
            now_ms,
            seen.address,
            seen.host_key,
            *EXCHANGED_TEXTS,
            report.account,
            to_json(sorted(report.accounts)) if report.accounts_are_all else "",
        ),
    )


def _stored_gpu(gpu: GpuReport) -> dict[str, Any]:
    stored: dict[str, Any] = {
        "uuid": gpu.uuid,
        "name": gpu.name,
        "memory_bytes": gpu.memory_bytes,
        "index": gpu.index,
        "vendor": gpu.vendor,
    }
    return _with_use(stored, gpu.used_by)


def _with_use(stored: dict[str, Any], use: GpuProcess | None) -> dict[str, Any]:
    """Say who uses the GPU outside fleetform; the text of one that is free stays as it was."""
    rest = {name: value for name, value in stored.items() if name != "used_by"}
    if use is None:
        return rest
    return {**rest, "used_by": {"pid": use.pid, "user": use.user, "program": use.program}}


def note_gpu_processes(
    transaction: Transaction, instance_uid: str, processes: Mapping[str, GpuProcess | None]
) -> None:
    """See `model.ports.Ledger.note_gpu_processes`."""
    row = transaction.one(
        "SELECT gpus FROM instances WHERE uid = ? AND state <> 'terminated'", (instance_uid,)
    )
    if row is None or not row[0]:
        return
    gpus = to_json(
        [
            _with_use(gpu, processes[gpu["uuid"]]) if gpu["uuid"] in processes else gpu
            for gpu in json.loads(row[0])
        ]
    )
    # A placement that was decided before names the generation before, and is decided again.
    transaction.execute(
        "UPDATE instances SET generation = generation + 1, gpus = ?1 WHERE uid = ?2 AND gpus <> ?1",
        (gpus, instance_uid),
    )


def _known(declared: int | None, reported: int) -> int:
    return reported if declared is None else declared


def _prove_losses(
    transaction: Transaction,
    seen: HostSeen,
    name: str,
    boot_id: str,
    install_id: str,
    heard_at_ms: int | None,
    now_ms: int,
) -> tuple[JobKey, ...]:
    another_install = bool(install_id) and install_id != seen.install_id
    rebooted = bool(boot_id) and boot_id != seen.boot_id
    if seen.records is None and not another_install:
        # Its events since the cursor tell how each of its jobs ended, and a start that never
        # reached it is refused under the old boot.
        return ()
    if not another_install and not rebooted:
        return _prove_forgotten(transaction, seen, name, heard_at_ms, now_ms)
    # Under the same boot the host's word counts for whatever it knows: its folder was exchanged
    # for an older one, say, and it has ended what that one tells nothing of.
    told = {
        record.key
        for record in seen.records or ()
        if not rebooted or record.state is JobState.FINISHED
    }
    return lose_jobs(
        transaction,
        seen.instance_uid,
        f"host {name} was installed again" if another_install else f"host {name} was rebooted",
        now_ms=now_ms,
        heard_at_ms=heard_at_ms,
        still_alive_boot="" if another_install else seen.boot_id,
        spared=told,
    )


def _prove_forgotten(
    transaction: Transaction, seen: HostSeen, name: str, heard_at_ms: int | None, now_ms: int
) -> tuple[JobKey, ...]:
    """
    End jobs that were at work there, and that the host knows nothing of.

    It ends what it finds at work without a record before it says hello, so they are over. What was
    no more than sent may not have come, and is sent again.
    """
    return lose_jobs(
        transaction,
        seen.instance_uid,
        f"host {name} has no record of it: its folder was removed or replaced by an older copy",
        now_ms=now_ms,
        heard_at_ms=heard_at_ms,
        begun=True,
        spared={record.key for record in seen.records or ()},
    )


def mark_instance(
    transaction: Transaction,
    instance_uid: str,
    *,
    state: str,
    message: str,
    heard_at_ms: int | None = None,
    now_ms: int,
) -> None:
    """
    Write down what is believed of an instance, and when it was heard last where that is known.

    Silence (`recovering`, `unreachable`) moves no job, and only a host that is ready or suspect becomes
    `recovering`. `terminated` is a provider's word that it is gone, and
    with it whatever it ran. Only a ready one becomes `suspect`. Without a hello, a suspect one becomes
    `ready`, and a recovering one if `heard_at_ms` says that it was heard.
    """
    wanted = InstanceState(state)
    row = transaction.one(
        "SELECT name, state, message, fleet FROM instances WHERE uid = ? AND state <> 'terminated'",
        (instance_uid,),
    )
    if row is None or (row[1], row[2]) == (wanted, message):
        return
    name, before, _, fleet = row
    if wanted in _ONLY_AFTER and before not in _ONLY_AFTER[wanted]:
        return
    if (before, wanted) == (InstanceState.RECOVERING, InstanceState.READY) and heard_at_ms is None:
        return
    if before == InstanceState.TERMINATING and wanted is not InstanceState.TERMINATED:
        # Whether it answers or not, it is leaving.
        wanted = InstanceState.TERMINATING
    transaction.execute(
        "UPDATE instances SET state = ?1, message = ?2, generation = generation + ?3,"
        " seen_at_ms = coalesce(?4, seen_at_ms) WHERE uid = ?5",
        (wanted, message, int(before != wanted), heard_at_ms, instance_uid),
    )
    if before == wanted:
        return
    if wanted is InstanceState.TERMINATED:
        lose_jobs(
            transaction, instance_uid, message or f"host {name} no longer exists", now_ms=now_ms
        )
        end_quarantine(transaction, name, now_ms=now_ms)
    _refresh(transaction, instance_uid, now_ms)
    transaction.log(
        f"host.{wanted}",
        now_ms,
        f"host {name} is {wanted}" + (f": {message}" if message else ""),
        ResourceKey("fleet", fleet),
    )


_ONLY_AFTER: Mapping[InstanceState, Container[str]] = {
    # A silent host is worse than a suspect one, and to be heard is what ends silence.
    InstanceState.SUSPECT: {InstanceState.READY},
    InstanceState.READY: {InstanceState.SUSPECT, InstanceState.RECOVERING},
    InstanceState.RECOVERING: {
        InstanceState.READY,
        InstanceState.SUSPECT,
        InstanceState.RECOVERING,
    },
}


def mark_forgotten(transaction: Transaction, keys: Sequence[JobKey]) -> None:
    """The host has deleted what it kept of these; only what has ended can be forgotten."""
    transaction.many(
        "UPDATE jobs SET forgotten = 1 WHERE run_uid = ? AND attempt = ? AND rank = ?"
        " AND state = 'finished' AND forgotten = 0",
        keys,
    )


def _refresh(transaction: Transaction, instance_uid: str, now_ms: int) -> None:
    """Silence makes runs unknown, and an answer makes them what they were."""
    runs = transaction.execute(
        "SELECT DISTINCT run_uid FROM jobs INDEXED BY jobs_placed"
        " WHERE instance_uid = ? AND instance_uid <> '' AND state <> 'finished' ORDER BY run_uid",
        (instance_uid,),
    ).fetchall()
    refresh_runs(transaction, [uid for (uid,) in runs], now_ms=now_ms)


# Jobs that are proved dead without a word of their host: another boot, another install, released.
# The proof is the caller's; here it is only written down. Silence is a proof only for jobs that their host
# ends by itself.


def lose_jobs(
    transaction: Transaction,
    instance_uid: str,
    why: str,
    *,
    now_ms: int,
    heard_at_ms: int | None = None,
    still_alive_boot: str = "",
    begun: bool = False,
    spared: Container[JobKey] = (),
) -> tuple[JobKey, ...]:
    """
    End what an instance can no longer be running, and give back its units.

    `why` is a sentence for people, kept with each job. Jobs reserved under `still_alive_boot` are
    not touched (empty: all are lost), nor with `begun` those that the host never said to be at work,
    nor those in `spared`, of which the host itself tells how they ended. `heard_at_ms` is when the
    host was heard last before the proof; None: when the row says so.

    Returns:
        Keys of the jobs that ended: as `lost` where a process of theirs may have existed, else
        as `never_started`.
    """
    rows = transaction.execute(
        "SELECT run_uid, attempt, rank, uid, state, started_at_ms FROM jobs INDEXED BY jobs_placed"
        " WHERE instance_uid = ? AND instance_uid <> '' AND state <> 'finished'"
        " AND (? = '' OR boot_id <> ?) AND (? = 0 OR state IN ('running', 'cleaning', 'unknown'))"
        " ORDER BY run_uid, attempt, rank",
        (instance_uid, still_alive_boot, still_alive_boot, int(begun)),
    ).fetchall()
    if heard_at_ms is None:
        heard_at_ms = _heard_at_ms(transaction, instance_uid)
    # The host keeps no record that it would have to forget.
    return _end(
        transaction,
        [
            _Dead(key, uid, state, why, last_sign_of_life_ms(started, heard_at_ms, now_ms))
            for *keyed, uid, state, started in rows
            if (key := JobKey(*keyed)) not in spared
        ],
        now_ms,
        forgotten=True,
    )


def forget_jobs(transaction: Transaction, instance_uid: str) -> None:
    """Write down that an instance that no longer exists keeps no record of the jobs that have ended there."""
    transaction.execute(
        "UPDATE jobs SET forgotten = 1, gen = gen + 1"
        " WHERE instance_uid = ? AND instance_uid <> '' AND state = 'finished' AND forgotten = 0",
        (instance_uid,),
    )


def _heard_at_ms(transaction: Transaction, instance_uid: str) -> int | None:
    row = transaction.one("SELECT seen_at_ms FROM instances WHERE uid = ?", (instance_uid,))
    return None if row is None else row[0]


def last_sign_of_life_ms(started_at_ms: int | None, heard_at_ms: int | None, now_ms: int) -> int:
    """
    Return when a lost job counts as ended: the silence after that is no time of its run.

    The start is by the clock of the host, and a job that has begun has not ended before.
    """
    if started_at_ms is None or heard_at_ms is None:
        return now_ms
    return max(started_at_ms, min(heard_at_ms, now_ms))


class _Dead(NamedTuple):
    """A job that cannot be running, the sentence that says why, and its end."""

    key: JobKey
    uid: str
    state: str
    why: str
    ended_at_ms: int


def _end(
    transaction: Transaction, dead: Sequence[_Dead], now_ms: int, *, forgotten: bool
) -> tuple[JobKey, ...]:
    if not dead:
        return ()
    transaction.many(
        "UPDATE jobs SET state = 'finished', cause = ?, message = ?, finished_at_ms = ?,"
        " forgotten = ?, gen = gen + 1 WHERE run_uid = ? AND attempt = ? AND rank = ?",
        ((_cause(one.state), one.why, one.ended_at_ms, int(forgotten), *one.key) for one in dead),
    )
    free_units(transaction, [one.uid for one in dead])
    for one in dead:
        _log(transaction, one.key, one.state, one.why, now_ms)
    keys = tuple(one.key for one in dead)
    refresh_runs(transaction, dict.fromkeys(key.run_uid for key in keys), now_ms=now_ms)
    return keys


def end_unheard(
    transaction: Transaction, keys: Sequence[JobKey], *, now_ms: int
) -> tuple[JobKey, ...]:
    """See `model.ports.Ledger.end_unheard`."""
    dead = []
    for key in keys:
        row = transaction.one(
            "SELECT j.uid, j.state, j.silence, i.name, j.started_at_ms, i.seen_at_ms FROM jobs j"
            " JOIN instances i ON i.uid = j.instance_uid"
            " WHERE j.run_uid = ? AND j.attempt = ? AND j.rank = ? AND j.silence <> ''"
            " AND j.state NOT IN ('waiting', 'finished', 'unknown')",
            key,
        )
        if row is not None:
            uid, state, silence, host, started, heard = row
            limit = silence_of(silence)
            assert limit is not None, key
            after = figures.span(limit.after_seconds * 1000)
            why = (
                f"host {host} is unreachable, and stops a job that hears no controller for {after}"
                " (`on_silence`)"
            )
            ended_at_ms = last_sign_of_life_ms(started, heard, now_ms)
            dead.append(_Dead(key, uid, state, why, ended_at_ms))
    return _end(transaction, dead, now_ms, forgotten=False)


def free_units(transaction: Transaction, job_uids: list[str]) -> None:
    """Give back what jobs held; their single units go with the allocation."""
    transaction.execute(
        "DELETE FROM allocations WHERE job_uid IN (SELECT value FROM json_each(?))",
        (to_json(job_uids),),
    )


def _cause(state: str) -> Cause:
    before_commit = state in {"reserved", "preparing", "prepared"}
    return Cause.NEVER_STARTED if before_commit else Cause.LOST


def _log(transaction: Transaction, key: JobKey, state: str, why: str, now_ms: int) -> None:
    row = transaction.one("SELECT name FROM runs WHERE uid = ?", (key.run_uid,))
    assert row is not None
    (name,) = row
    what = "never started" if _cause(state) is Cause.NEVER_STARTED else "was lost"
    transaction.log(
        "job.lost",
        now_ms,
        f"job {key.rank} of run {name} {what}: {why}",
        ("run", name),
        attempt=key.attempt,
        rank=key.rank,
    )


# Proof, by a host's hello, that a newer ledger of this environment has existed.
# What is committed here is committed before any host hears of it. So a host that has heard more
# than is written here has heard it from a ledger that went on after this copy of it was taken.


def outgrown_by(transaction: Transaction, seen: HostSeen) -> str:
    """Return the sentence that says what the host knows and this ledger does not, or nothing."""
    row = transaction.one(
        "SELECT i.name, i.log_id, i.log_number, m.ledger_id, m.epoch FROM instances i, meta m"
        " WHERE i.uid = ? AND i.state <> 'terminated'",
        (seen.instance_uid,),
    )
    if row is None:
        return ""
    name, log_id, log_number, ledger_id, epoch = row
    if seen.epoch > epoch:
        return f"host {name} knows epoch {seen.epoch} of the ledger, and this ledger is at epoch {epoch}"
    if log_id == seen.cursor.log_id and seen.oldest - 1 > log_number:
        return (
            f"the ledger had recorded the events of host {name} up to {seen.oldest - 1}, and has"
            f" them up to {log_number} now"
        )
    if seen.ledger_id != ledger_id:
        return ""
    if run_uid := _unknown_run(transaction, seen):
        return f"host {name} has had jobs of run {run_uid}, which is not in the ledger"
    return ""


def _unknown_run(transaction: Transaction, seen: HostSeen) -> str:
    """Return the uid of a run that only the host knows, or nothing."""
    uids = dict.fromkeys(record.key.run_uid for record in seen.records or ())
    row = transaction.one(
        "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT uid FROM runs) LIMIT 1",
        (json.dumps(list(uids)),),
    )
    return str(row[0]) if row is not None else ""

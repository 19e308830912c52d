"""
What is known of instances: a hello, silence, the end.

Another boot or install id is proof that what ran under the old one is dead. How it ended the host
may still know: a result that was written before the reboot is the host's to tell, and what its
records or its events are about to say is not overruled here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import JobState
from fleetform.model.instance import InstanceState
from fleetform.providers.contract.observed import HostSeen
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json
from fleetform.store.loss import lose_jobs
from fleetform.store.observations import heal
from fleetform.store.progress import refresh_runs

__all__ = ["commit_host", "mark_forgotten", "mark_instance"]


def commit_host(transaction: Transaction, seen: HostSeen, *, now_ms: int) -> tuple[JobKey, ...]:
    """See `model.ports.Ledger.commit_host`."""
    row = transaction.one(
        "SELECT name, state, boot_id, install_id, declared, fleet FROM instances"
        " WHERE uid = ? AND state <> 'terminated'",
        (seen.instance_uid,),
    )
    if row is None:
        return ()
    name, state, boot_id, install_id, declared, fleet = row
    _write(transaction, seen, state, declared, now_ms)
    # A hello is a look at this host: what it says is what the ledger counts on from now on.
    heal(transaction, ResourceKey("fleet", fleet), part=name)
    lost = _prove_losses(transaction, seen, name, boot_id, install_id, now_ms)
    if state != InstanceState.READY:
        _refresh(transaction, seen.instance_uid, now_ms)
        transaction.log("host.ready", now_ms, f"host {name} answers")
    return lost


def _write(
    transaction: Transaction, seen: HostSeen, state: str, declared: str, now_ms: int
) -> None:
    """
    Write identity and capacity; the generation goes up when a placement could notice.

    Capacity is what the fleet declares, else what the host reports.
    """
    report = seen.report
    gpus = to_json(
        [
            {
                "uuid": gpu.uuid,
                "name": gpu.name,
                "memory_bytes": gpu.memory_bytes,
                "index": gpu.index,
                "vendor": gpu.vendor,
            }
            for gpu in report.gpus
        ]
    )
    # Who is leaving goes on leaving; everybody else takes jobs from now on.
    now_state = state if state == InstanceState.TERMINATING else InstanceState.READY
    said: Mapping[str, Any] = json.loads(declared) if declared else {}
    transaction.execute(
        "UPDATE instances SET generation = generation + CASE WHEN"
        " (state, boot_id, cpu_millicores, memory_bytes, disk_bytes, gpus)"
        " <> (?1, ?2, ?3, ?4, ?5, ?6) THEN 1 ELSE 0 END,"
        " state = ?1, boot_id = ?2, cpu_millicores = ?3, memory_bytes = ?4, disk_bytes = ?5,"
        " gpus = ?6, install_id = ?7, machine_id = ?8, seen_at_ms = ?10,"
        # Why it leaves is still true of who leaves.
        " message = CASE WHEN state = 'terminating' THEN message ELSE '' END"
        " WHERE uid = ?9",
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
        ),
    )


def _known(declared: int | None, reported: int) -> int:
    return reported if declared is None else declared


def _prove_losses(
    transaction: Transaction,
    seen: HostSeen,
    name: str,
    boot_id: str,
    install_id: str,
    now_ms: int,
) -> tuple[JobKey, ...]:
    another_install = bool(install_id) and install_id != seen.install_id
    rebooted = bool(boot_id) and boot_id != seen.boot_id
    if seen.records is None and not another_install:
        # Its events since the cursor tell how each of its jobs ended, and a start that never
        # reached it is refused under the old boot.
        return ()
    if not another_install and not rebooted:
        return _prove_forgotten(transaction, seen, name, now_ms)
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
        still_alive_boot="" if another_install else seen.boot_id,
        spared=told,
    )


def _prove_forgotten(
    transaction: Transaction, seen: HostSeen, name: str, now_ms: int
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
        begun=True,
        spared={record.key for record in seen.records or ()},
    )


def mark_instance(
    transaction: Transaction, instance_uid: str, *, state: str, message: str, now_ms: int
) -> None:
    """
    Write down what is believed of an instance.

    Silence (`unreachable`) moves no job. `terminated` is a provider's word that it is gone, and
    with it whatever it ran. Only a ready one becomes `suspect`, and only a suspect one is called
    `ready` without a hello.
    """
    wanted = InstanceState(state)
    row = transaction.one(
        "SELECT name, state, message FROM instances WHERE uid = ? AND state <> 'terminated'",
        (instance_uid,),
    )
    if row is None or (row[1], row[2]) == (wanted, message):
        return
    name, before, _ = row
    if before != _ONLY_AFTER.get(wanted, before):
        return
    if before == InstanceState.TERMINATING and wanted is not InstanceState.TERMINATED:
        # Whether it answers or not, it is leaving.
        wanted = InstanceState.TERMINATING
    transaction.execute(
        "UPDATE instances SET state = ?, message = ?, generation = generation + ? WHERE uid = ?",
        (wanted, message, int(before != wanted), instance_uid),
    )
    if before == wanted:
        return
    if wanted is InstanceState.TERMINATED:
        lose_jobs(
            transaction, instance_uid, message or f"host {name} no longer exists", now_ms=now_ms
        )
    _refresh(transaction, instance_uid, now_ms)
    transaction.log(
        f"host.{wanted}",
        now_ms,
        f"host {name} is {wanted}" + (f": {message}" if message else ""),
    )


_ONLY_AFTER: Mapping[InstanceState, str] = {
    # Who is silent is worse than suspect, and a hello is what ends silence.
    InstanceState.SUSPECT: InstanceState.READY,
    InstanceState.READY: InstanceState.SUSPECT,
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

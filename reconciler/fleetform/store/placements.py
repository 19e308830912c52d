"""
Reserving whole gangs.

A placement is a belief about rows read some time ago: generation of the run, generation, state
and boot of each instance, units free. All of it is compared under the write lock; one miss leaves
the gang as it was. That units are free is compared here, so that a miss costs no exception, and
promised by the primary key of `units`, so that a mistake here cannot allot one twice.
"""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleetform.model.account import account_obstacle, job_account
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ledger import LedgerStatus
from fleetform.model.override import Override, OverrideKind, holding
from fleetform.model.run import from_document
from fleetform.model.volume import mounted_volumes
from fleetform.store.database import Transaction, to_json
from fleetform.store.lineage import record_upstream
from fleetform.store.overrides import read_overrides
from fleetform.store.rollouts import read_cordon
from fleetform.store.runs import gpus_text, silence_text
from fleetform.store.scheduler_state import read_master_ports
from fleetform.store.volume_hosts import leaving_volumes, read_volume_hosts

if TYPE_CHECKING:
    from fleetform.model.decision import Placement, Share

__all__ = ["commit_placements"]


def commit_placements(
    transaction: Transaction, placements: Sequence[Placement], *, now_ms: int
) -> tuple[bool, ...]:
    """See `model.ports.Ledger.commit_placements`."""
    status = transaction.one("SELECT status FROM meta")
    if status == (LedgerStatus.RECOVERING,):
        # Hosts may know of starts that this ledger does not.
        return tuple(False for _ in placements)
    round_ = _Round(transaction, placements, now_ms)
    keeper = _Keeper.of(transaction, now_ms)
    held = tuple(
        (keeper is None or keeper.allows(placement)) and round_.place(placement)
        for placement in placements
    )
    round_.write()
    return held


@dataclass(frozen=True, slots=True)
class _Keeper:
    """
    The overrides in force.

    A placement may have been decided before they were put in force.
    """

    transaction: Transaction
    overrides: tuple[Override, ...]

    @classmethod
    def of(cls, transaction: Transaction, now_ms: int) -> _Keeper | None:
        """Return None if no override is in force, which is nearly always."""
        overrides = holding(read_overrides(transaction), now_ms)
        return cls(transaction, overrides) if overrides else None

    def allows(self, placement: Placement) -> bool:
        if any(one.kind is OverrideKind.PAUSE for one in self.overrides):
            return False
        run = self.transaction.one(
            "SELECT name, parent FROM runs WHERE uid = ?", (placement.run_uid,)
        )
        if run is not None and any(one.stops(*run) for one in self.overrides):
            return False
        return not any(self._is_drained(share.instance_uid) for share in placement.shares)

    def _is_drained(self, instance_uid: str) -> bool:
        row = self.transaction.one(
            "SELECT fleet, name FROM instances WHERE uid = ?", (instance_uid,)
        )
        return row is not None and any(one.drains(*row) for one in self.overrides)


@dataclass(slots=True)
class _Room:
    """What is left of one instance while a batch is placed."""

    generation: int
    ready: bool
    boot_id: str
    sharing: str
    blocks: int
    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int | None
    """None: its size is unknown, so it is not counted; see `schedule.demand`."""
    gpus: set[str]
    env: str
    """What the fleet gives to jobs, as it is stored."""
    instance: Instance
    """As much of it as says which account a job runs as."""
    taken: set[str] = field(default_factory=set)

    def fits(self, share: Share) -> bool:
        return (
            self.ready
            and self.generation == share.instance_generation
            and self.boot_id == share.boot_id
            and share.cpu_millicores <= self.cpu_millicores
            and share.memory_bytes <= self.memory_bytes
            and (self.disk_bytes is None or share.disk_bytes <= self.disk_bytes)
            and self.gpus.issuperset(share.gpus)
            and self.taken.isdisjoint(share.gpus)
            and self.single_units(share) is not None
        )

    def single_units(self, share: Share) -> list[str] | None:
        """Name the units that are held as a whole, or None when too few are free."""
        if self.sharing == "whole":
            return None if "host" in self.taken else ["host", *share.gpus]
        if self.sharing != "blocks" or not share.blocks:
            return list(share.gpus)
        free = [name for name in self._block_names() if name not in self.taken]
        if len(free) < share.blocks:
            return None
        return [*free[: share.blocks], *share.gpus]

    def take(self, share: Share) -> list[str]:
        units = self.single_units(share)
        assert units is not None
        self.taken.update(units)
        self.cpu_millicores -= share.cpu_millicores
        self.memory_bytes -= share.memory_bytes
        if self.disk_bytes is not None:
            self.disk_bytes -= share.disk_bytes
        return units

    def _block_names(self) -> Iterator[str]:
        return (f"block-{number}" for number in range(self.blocks))


class _Round:
    """One batch: what it compares is read at once, what it changes is written at once."""

    def __init__(
        self, transaction: Transaction, placements: Sequence[Placement], now_ms: int
    ) -> None:
        self._transaction = transaction
        self._now_ms = now_ms
        self._rooms = _read_rooms(
            transaction, {share.instance_uid for one in placements for share in one.shares}
        )
        uids = [one.run_uid for one in placements]
        self._waiting = _read_waiting(transaction, uids, now_ms)
        for uid in _kept_by_volumes(transaction, uids):
            self._waiting.pop(uid, None)
        self._homes = _volume_homes(transaction, uids)
        self._silence = _read_silence(transaction, uids)
        has_gang = any(one.master_port is not None for one in placements)
        self._ports = set(read_master_ports(transaction).values()) if has_gang else set[int]()
        self._jobs: list[tuple[Any, ...]] = []
        self._allocations: list[tuple[Any, ...]] = []
        self._units: list[tuple[str, str, str]] = []
        self._attempts: list[tuple[Any, ...]] = []
        self._placed: set[str] = set()

    def place(self, placement: Placement) -> bool:
        jobs = self._waiting_jobs(placement)
        # In one order, so that two batches compare instances alike.
        shares = sorted(placement.shares, key=lambda share: share.instance_uid)
        if jobs is None or len(jobs) != len(shares):
            return False
        # A gang's ranks go to different instances: each is asked for one share.
        if len({share.instance_uid for share in shares}) != len(shares):
            return False
        if {share.rank for share in shares} != jobs.keys():
            return False
        if placement.master_port in self._ports:
            return False
        rooms = [self._rooms.get(share.instance_uid) for share in shares]
        *_, owner = self._waiting[placement.run_uid]
        home = self._homes.get(placement.run_uid)
        for room, share in zip(rooms, shares, strict=True):
            if room is None or not room.fits(share) or account_obstacle(room.instance, owner):
                return False
            if home is not None and room.instance.name not in home:
                return False
        alone = len(shares) == 1
        for room, share in zip(rooms, shares, strict=True):
            assert room is not None
            account = job_account(room.instance, owner)
            self._reserve(placement, share, jobs[share.rank], room, account, alone=alone)
        now_ms, port = self._now_ms, placement.master_port
        self._attempts.append(
            ("starting", now_ms, now_ms, port, placement.run_uid, placement.attempt)
            if alone
            else ("reserved", now_ms, None, port, placement.run_uid, placement.attempt)
        )
        if port is not None:
            self._ports.add(port)
        self._placed.add(placement.run_uid)
        return True

    def _waiting_jobs(self, placement: Placement) -> dict[int, str] | None:
        """Return the job uids by rank, or None when the run is not what the placement saw."""
        if placement.run_uid in self._placed:
            return None
        seen, jobs, _ = self._waiting.get(placement.run_uid, _NOT_WAITING)
        return jobs if seen == (placement.run_generation, placement.attempt) else None

    def _reserve(
        self,
        placement: Placement,
        share: Share,
        job_uid: str,
        room: _Room,
        account: str,
        *,
        alone: bool,
    ) -> None:
        gpus = gpus_text(share.gpus)
        self._jobs.append(
            ("starting" if alone else "reserved", share.instance_uid, share.boot_id,
             share.cpu_millicores, share.memory_bytes, int(share.memory_limited),
             share.disk_bytes, gpus, len(share.gpus), share.blocks, room.env, account,
             self._silence.get(placement.run_uid, ""), placement.run_uid, placement.attempt, share.rank)
        )  # fmt: skip
        self._allocations.append(
            (job_uid, share.instance_uid, placement.run_uid, share.cpu_millicores,
             share.memory_bytes, share.disk_bytes, gpus, len(share.gpus), share.blocks)
        )  # fmt: skip
        self._units.extend((share.instance_uid, unit, job_uid) for unit in room.take(share))

    def write(self) -> None:
        many = self._transaction.many
        many(
            "UPDATE jobs SET state = ?, gen = gen + 1, instance_uid = ?, boot_id = ?,"
            " cpu_millicores = ?, memory_bytes = ?, memory_limited = ?, disk_bytes = ?, gpus = ?,"
            " gpus_count = ?, blocks = ?, env = ?, account = ?, silence = ? WHERE run_uid = ? AND attempt = ? AND rank = ?",
            self._jobs,
        )
        many("INSERT INTO allocations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._allocations)
        many("INSERT INTO units VALUES (?, ?, ?)", self._units)
        many(
            "UPDATE instances SET idle_since_ms = NULL WHERE uid = ? AND idle_since_ms IS NOT NULL",
            [(uid,) for uid in sorted({one[1] for one in self._allocations})],
        )
        many(
            "UPDATE attempts SET state = ?, reserved_at_ms = ?, starting_at_ms = ?, master_port = ?"
            " WHERE run_uid = ? AND number = ?",
            self._attempts,
        )
        many(
            "UPDATE runs SET state = 'preparing', cause = '', message = '',"
            " generation = generation + 1 WHERE uid = ?",
            [(uid,) for *_, uid, _ in self._attempts],
        )
        record_upstream(self._transaction, [(uid, attempt) for *_, uid, attempt in self._attempts])


_Waiting = tuple[tuple[int, int], dict[int, str], str]
"""Generation and attempt, the uids of jobs by rank, and the owner."""

_NOT_WAITING: _Waiting = ((0, 0), {}, "")


def _read_waiting(
    transaction: Transaction, run_uids: Sequence[str], now_ms: int
) -> dict[str, _Waiting]:
    """Read which of these runs wait for a place: generation, attempt, and job uids by rank."""
    uids = to_json(list(run_uids))
    waiting: dict[str, _Waiting] = {
        uid: ((generation, attempt), {}, owner)
        for uid, generation, attempt, owner in transaction.execute(
            "SELECT r.uid, r.generation, r.attempt, r.owner FROM runs r"
            " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
            " WHERE r.uid IN (SELECT value FROM json_each(?1)) AND r.final = 0"
            " AND r.stop_requested = '' AND a.state = 'waiting'"
            # A clock that was set back to before the delay began has made it too long.
            " AND (r.not_before_ms <= ?2 OR a.submitted_at_ms > ?2)"
            # The earlier run of its name is over, and proved to be.
            " AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.uid = r.after_uid AND p.final = 0)"
            " AND NOT EXISTS (SELECT 1 FROM jobs j"
            " WHERE j.run_uid = r.after_uid AND j.state <> 'finished')",
            (uids, now_ms),
        )
    }
    for uid, rank, job_uid in transaction.execute(
        "SELECT j.run_uid, j.rank, j.uid FROM runs r"
        " JOIN jobs j ON j.run_uid = r.uid AND j.attempt = r.attempt"
        " WHERE r.uid IN (SELECT value FROM json_each(?)) AND j.state = 'waiting'",
        (uids,),
    ):
        if uid in waiting:
            waiting[uid][1][rank] = job_uid
    return waiting


def _kept_by_volumes(transaction: Transaction, run_uids: Sequence[str]) -> list[str]:
    """Return those of these runs that mount a volume which is about to be removed."""
    leaving = leaving_volumes(transaction)
    if not leaving:
        return []
    rows = transaction.execute(
        "SELECT uid, document FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
        (to_json(list(run_uids)),),
    )
    return [uid for uid, document in rows if not leaving.isdisjoint(mounted_volumes(document))]


def _volume_homes(transaction: Transaction, run_uids: Sequence[str]) -> dict[str, frozenset[str]]:
    """Name the hosts that have all volumes of a run, by its uid; a run that may go anywhere is missing."""
    hosts = read_volume_hosts(transaction)
    if not hosts:
        return {}
    rows = transaction.execute(
        "SELECT uid, document FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
        (to_json(list(run_uids)),),
    )
    mounted = ((uid, mounted_volumes(document) & hosts.keys()) for uid, document in rows)
    return {
        uid: frozenset.intersection(*(hosts[name] for name in names))
        for uid, names in mounted
        if names
    }


def _read_silence(transaction: Transaction, run_uids: Sequence[str]) -> dict[str, str]:
    """Read what those of these runs say that have `on_silence`, as it is stored with their jobs."""
    rows = transaction.execute(
        "SELECT uid, name, document FROM runs WHERE uid IN (SELECT value FROM json_each(?))"
        " AND document LIKE '%\"on_silence\"%'",
        (to_json(list(run_uids)),),
    )
    limits = {uid: from_document(name, json.loads(text)).silence for uid, name, text in rows}
    return {uid: silence_text(limit) for uid, limit in limits.items() if limit is not None}


def _read_rooms(transaction: Transaction, instance_uids: Iterable[str]) -> dict[str, _Room]:
    """Read what is left of these instances, in four statements."""
    uids = (to_json(sorted(instance_uids)),)
    these = "IN (SELECT value FROM json_each(?))"
    used = {
        uid: sums
        for uid, *sums in transaction.execute(
            "SELECT instance_uid, CAST(sum(cpu_millicores) AS BIGINT),"
            " CAST(sum(memory_bytes) AS BIGINT), CAST(sum(disk_bytes) AS BIGINT)"
            f" FROM allocations WHERE instance_uid {these} GROUP BY instance_uid",
            uids,
        )
    }
    taken: dict[str, set[str]] = {}
    for uid, unit in transaction.execute(
        f"SELECT instance_uid, unit FROM units WHERE instance_uid {these}", uids
    ):
        taken.setdefault(uid, set()).add(unit)
    rooms = {}
    # A placement may have been decided before a person agreed to the end of its host.
    closing = read_cordon(transaction)
    for (
        uid,
        name,
        fleet,
        template,
        generation,
        state,
        boot_id,
        sharing,
        blocks,
        cpu,
        memory,
        disk,
        gpus,
        env,
        provider,
        run_as,
        agent_account,
        accounts,
    ) in transaction.execute(
        "SELECT uid, name, fleet, template_digest, generation, state, boot_id, sharing, blocks,"
        " cpu_millicores, memory_bytes, disk_bytes, gpus, env, provider, run_as, agent_account,"
        f" accounts FROM instances WHERE uid {these}",
        uids,
    ):
        cpu_used, memory_used, disk_used = used.get(uid, (0, 0, 0))
        rooms[uid] = _Room(
            generation=generation,
            ready=state == "ready" and not closing.reason(fleet, name, template),
            boot_id=boot_id,
            sharing=sharing,
            blocks=blocks,
            cpu_millicores=cpu - cpu_used,
            memory_bytes=memory - memory_used,
            disk_bytes=disk - disk_used if disk else None,
            gpus={gpu["uuid"] for gpu in json.loads(gpus)} if gpus else set(),
            env=env,
            instance=Instance(
                uid=uid,
                name=name,
                fleet=fleet,
                number=0,
                state=InstanceState.READY,
                provider=provider,
                run_as=run_as,
                agent_account=agent_account,
                accounts=frozenset(json.loads(accounts)) if accounts else None,
            ),
            taken=taken.get(uid, set()),
        )
    return rooms

"""
The ledger: each call one transaction, each noun's rows in its own module.

`database` says what a transaction promises, on SQLite, and `postgres/database` how PostgreSQL keeps
it; `opening` and `postgres/opening` are how one of these is had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.model.apply import Accepted, Begun, StepOutcome
from fleetform.model.ports import HostNews, Ids, InstanceMark, LedgerOutgrown
from fleetform.store import rebuild
from fleetform.store.adoption import adopt_evidence
from fleetform.store.database import to_json
from fleetform.store.fleets import note_created, note_ended, retire
from fleetform.store.hosts import (
    commit_host,
    end_unheard,
    mark_forgotten,
    mark_instance,
    note_gpu_processes,
    outgrown_by,
)
from fleetform.store.observations import note_observations
from fleetform.store.offers import refuse_offers, retry_offers, take_offers
from fleetform.store.overrides import end_stopped, lift_overrides, put_overrides
from fleetform.store.placements import commit_placements
from fleetform.store.plans import accept, finish_apply, unfinished_apply
from fleetform.store.reads import Reads
from fleetform.store.records import commit_news, commit_records
from fleetform.store.resources import Context
from fleetform.store.rollouts import commit_exchanges
from fleetform.store.scaling import commit_scaling
from fleetform.store.steps import begin_steps, finish_steps
from fleetform.store.transitions import commit_transitions
from fleetform.store.volumes import note_attachment

if TYPE_CHECKING:
    from fleetform.agents.protocol.host_report import GpuProcess
    from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
    from fleetform.model.decision import Next, Placement
    from fleetform.model.drift import RecordedDrift
    from fleetform.model.history import LoggedEvent
    from fleetform.model.offers import NoOffer, Refusal, RefusedOffer, TriedOffer
    from fleetform.model.override import Override, OverrideKind, PutInForce
    from fleetform.model.plan import Plan, Step
    from fleetform.model.recovery import Evidence, Recovered
    from fleetform.model.rollout import Exchange, Template
    from fleetform.model.run import RunUid
    from fleetform.model.scaling import IdleHosts, ScaleRequest
    from fleetform.providers.contract.hosts import CreatedHost
    from fleetform.providers.contract.observed import HostSeen
    from fleetform.spec.desired import ResourceKey
    from fleetform.store.statements import Storage

__all__ = ["StoredLedger"]


class StoredLedger(Reads):
    """
    Implements `model.ports.Ledger`; the docstrings there hold here.

    Raises `LedgerUnavailable` from any call that could not be written: nothing was.
    """

    def __init__(self, database: Storage, ids: Ids) -> None:
        super().__init__(database)
        self._ids = ids

    def take_fence(self, *, who: str, now_ms: int) -> int:
        with self._database.write(takes_fence=True) as transaction:
            fence = self._database.raise_fence(transaction, who)
            transaction.log("manager.changed", now_ms, f"{who} now drives the runs")
            return fence

    # -- plans ----------------------------------------------------------------------------

    def accept(
        self, plan: Plan, body: bytes, *, who: str, now_ms: int, owner: str = ""
    ) -> Accepted:
        with self._database.write() as transaction:
            return accept(
                transaction, plan, body, who=who, now_ms=now_ms, ids=self._ids, owner=owner
            )

    def unfinished_apply(self) -> tuple[Accepted, bytes] | None:
        with self._database.read() as connection:
            return unfinished_apply(connection)

    def begin_steps(
        self, apply_uid: str, steps: Sequence[Step], *, fence: int | None = None, now_ms: int
    ) -> Mapping[str, Begun]:
        with self._database.write(fence=fence) as transaction:
            return begin_steps(transaction, apply_uid, steps, now_ms=now_ms, ids=self._ids)

    def finish_steps(
        self,
        apply_uid: str,
        steps: Sequence[Step],
        outcomes: Sequence[StepOutcome],
        *,
        fence: int | None = None,
        now_ms: int,
    ) -> Mapping[str, str]:
        with self._database.write(fence=fence) as transaction:
            return finish_steps(
                transaction, apply_uid, steps, outcomes, now_ms=now_ms, ids=self._ids
            )

    def finish_apply(
        self, apply_uid: str, *, state: str, summary: str, fence: int | None = None, now_ms: int
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            finish_apply(transaction, apply_uid, state=state, summary=summary, now_ms=now_ms)

    # -- runs -----------------------------------------------------------------------------

    def commit_placements(
        self, placements: Sequence[Placement], *, fence: int, now_ms: int
    ) -> tuple[bool, ...]:
        with self._database.write(fence=fence) as transaction:
            return commit_placements(transaction, placements, now_ms=now_ms)

    def commit_transitions(
        self, transitions: Sequence[tuple[RunUid, Next]], *, fence: int, now_ms: int
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            commit_transitions(transaction, transitions, now_ms=now_ms, ids=self._ids)

    def commit_records(
        self,
        instance_uid: str,
        records: Sequence[JobRecord],
        cursor: Cursor | None,
        *,
        snapshot: bool,
        fence: int,
        now_ms: int,
    ) -> tuple[JobKey, ...]:
        with self._database.write(fence=fence) as transaction:
            return commit_records(
                transaction, instance_uid, records, cursor, snapshot=snapshot, now_ms=now_ms
            )

    def commit_news(
        self, news: Sequence[HostNews], *, fence: int, now_ms: int
    ) -> tuple[JobKey, ...]:
        with self._database.write(fence=fence) as transaction:
            return commit_news(transaction, news, now_ms=now_ms)

    def commit_host(self, seen: HostSeen, *, fence: int, now_ms: int) -> tuple[JobKey, ...]:
        with self._database.write(fence=fence) as transaction:
            proof = outgrown_by(transaction, seen)
            if not proof:
                return commit_host(transaction, seen, now_ms=now_ms)
            rebuild.begin_recovery(transaction, proof)
        # Only now: an exception inside would take the mark back with everything else.
        raise LedgerOutgrown(proof)

    def mark_instance(
        self,
        instance_uid: str,
        *,
        state: str,
        message: str,
        heard_at_ms: int | None = None,
        fence: int | None = None,
        now_ms: int,
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            mark_instance(
                transaction,
                instance_uid,
                state=state,
                message=message,
                heard_at_ms=heard_at_ms,
                now_ms=now_ms,
            )

    def mark_instances(self, marks: Sequence[InstanceMark], *, fence: int, now_ms: int) -> None:
        with self._database.write(fence=fence) as transaction:
            for one in marks:
                mark_instance(
                    transaction,
                    one.instance_uid,
                    state=one.state,
                    message=one.message,
                    heard_at_ms=one.heard_at_ms,
                    now_ms=now_ms,
                )

    def end_unheard(self, keys: Sequence[JobKey], *, fence: int, now_ms: int) -> tuple[JobKey, ...]:
        with self._database.write(fence=fence) as transaction:
            return end_unheard(transaction, keys, now_ms=now_ms)

    def note_created(
        self, instance_uid: str, created: CreatedHost, *, fence: int, now_ms: int
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            note_created(transaction, instance_uid, created, now_ms=now_ms)

    def note_attachment(self, volume_uid: str, instance_uid: str, *, fence: int) -> None:
        with self._database.write(fence=fence) as transaction:
            note_attachment(transaction, volume_uid, instance_uid)

    def note_ended(self, instance_uid: str, why: str, *, fence: int, now_ms: int) -> None:
        with self._database.write(fence=fence) as transaction:
            note_ended(transaction, instance_uid, why, now_ms=now_ms)

    def take_offers(
        self, uids: Sequence[str], *, fence: int, now_ms: int
    ) -> Mapping[str, Mapping[str, Any] | NoOffer]:
        with self._database.write(fence=fence) as transaction:
            return take_offers(transaction, uids, now_ms=now_ms)

    def refuse_offers(
        self, refusals: Sequence[Refusal], *, fence: int, now_ms: int
    ) -> tuple[RefusedOffer, ...]:
        with self._database.write(fence=fence) as transaction:
            return refuse_offers(transaction, refusals, ids=self._ids, now_ms=now_ms)

    def pin_host_key(self, instance_uid: str, keys: str, *, fence: int) -> None:
        with self._database.write(fence=fence) as transaction:
            transaction.execute(
                "UPDATE instances SET host_key = ?, generation = generation + 1 WHERE uid = ?",
                (keys, instance_uid),
            )

    def note_gpu_processes(
        self, instance_uid: str, processes: Mapping[str, GpuProcess | None], *, fence: int
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            note_gpu_processes(transaction, instance_uid, processes)

    def retire(self, instance_uid: str, *, fence: int, now_ms: int) -> None:
        with self._database.write(fence=fence) as transaction:
            retire(transaction, instance_uid, now_ms=now_ms)

    def commit_exchanges(
        self,
        fleet: str,
        template: Template,
        moves: Sequence[Exchange],
        *,
        fence: int,
        now_ms: int,
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            commit_exchanges(transaction, fleet, template, moves, ids=self._ids, now_ms=now_ms)

    def commit_scaling(
        self, requests: Sequence[ScaleRequest], idle: IdleHosts, *, fence: int, now_ms: int
    ) -> None:
        with self._database.write(fence=fence) as transaction:
            commit_scaling(transaction, requests, idle, ids=self._ids, now_ms=now_ms)

    def mark_forgotten(self, keys: Sequence[JobKey], *, fence: int | None = None) -> None:
        with self._database.write(fence=fence) as transaction:
            mark_forgotten(transaction, keys)

    # -- requests of people -----------------------------------------------------------------

    def put_overrides(
        self,
        kind: OverrideKind,
        targets: Sequence[str],
        *,
        reason: str,
        who: str,
        now_ms: int,
        until_ms: int | None,
        fence: int | None = None,
    ) -> PutInForce:
        with self._database.write(fence=fence) as transaction:
            return put_overrides(
                transaction, kind, targets, reason=reason, who=who, now_ms=now_ms, until_ms=until_ms
            )

    def lift_overrides(
        self, numbers: Sequence[int] | None, *, who: str, now_ms: int
    ) -> tuple[Override, ...]:
        with self._database.write() as transaction:
            return lift_overrides(transaction, numbers, who=who, now_ms=now_ms)

    def retry_offers(self, fleet: str, *, who: str, now_ms: int) -> tuple[TriedOffer, ...]:
        with self._database.write() as transaction:
            return retry_offers(transaction, fleet, who=who, now_ms=now_ms)

    def note_observations(
        self,
        right: Mapping[ResourceKey, Mapping[str, str]],
        recorded: Sequence[RecordedDrift] | None = None,
        *,
        at_ms: int,
    ) -> None:
        with self._database.write() as transaction:
            note_observations(transaction, right, recorded, at_ms=at_ms)

    def append_events(self, events: Sequence[LoggedEvent]) -> None:
        with self._database.write() as transaction:
            for event in events:
                transaction.log(
                    event.kind,
                    event.at_ms,
                    event.message,
                    event.resource or ("", ""),
                    attempt=event.attempt,
                    rank=event.rank,
                    data=to_json(dict(event.data)) if event.data else "",
                )

    # -- recovery ---------------------------------------------------------------------------

    def begin_recovery(self, note: str) -> None:
        """Refuse starts and plans until `end_recovery`: hosts remember another ledger."""
        with self._database.write() as transaction:
            rebuild.begin_recovery(transaction, note)

    def end_recovery(self) -> None:
        with self._database.write() as transaction:
            rebuild.end_recovery(transaction)

    def raise_epoch(self, *, above: int = 0) -> int:
        """Take a new epoch, above this ledger's and `above`; returns it."""
        with self._database.write() as transaction:
            return rebuild.raise_epoch(transaction, above)

    def adopt_records(
        self,
        instance_uid: str,
        records: Sequence[JobRecord],
        *,
        names: Mapping[str, str],
        now_ms: int,
    ) -> tuple[JobKey, ...]:
        """Insert the jobs that a host remembers and this ledger does not; returns their keys."""
        with self._database.write() as transaction:
            return rebuild.adopt_records(
                transaction, instance_uid, records, names=names, now_ms=now_ms
            )

    def adopt_evidence(
        self,
        evidence: Evidence,
        steps: Mapping[str, Step],
        *,
        who: str,
        now_ms: int,
        mark_missing: bool,
        is_rebuild: bool = True,
    ) -> tuple[Recovered, ...]:
        """
        Write what the evidence proves, all of it or nothing.

        With `is_rebuild` the evidence is of all hosts, and a recovery is over.
        """
        with self._database.write() as transaction:
            context = Context(transaction, "", "", who, now_ms, self._ids)
            found = adopt_evidence(context, evidence, steps, mark_missing=mark_missing)
            end_stopped(transaction, now_ms)
            if is_rebuild:
                rebuild.end_recovery(transaction)
                said = f"{who} rebuilt the ledger from its hosts"
                transaction.log("ledger.rebuilt", now_ms, said)
            return found

    def restore(self, path: Path, *, who: str, now_ms: int) -> int:
        """Put a backup in the place of all rows: all of it or nothing; returns the new epoch."""
        from fleetform.store.backup import restore_rows

        with self._database.write() as transaction:
            epoch = restore_rows(transaction, path, who=who, now_ms=now_ms)
            self._database.renumber(transaction)
            return epoch

    def copy(self) -> StoredLedger:
        """Copy this ledger into memory, to try out what would become of it."""
        return StoredLedger(self._database.copy(), self._ids)

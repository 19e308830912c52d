"""
What can be read of a ledger; a writer reads with the same methods.

Each call sees one state of the ledger, whatever is committed meanwhile. Documents are parsed for
runs that are asked for and never for a plan, which compares digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.model.ledger import LedgerStatus, Standing
from fleetform.store.database import Database, connect_reading
from fleetform.store.soundness import require_current, require_sound

if TYPE_CHECKING:
    from fleetform.model.apply import ApplyRecord
    from fleetform.model.cost import Spending
    from fleetform.model.drift import Noted
    from fleetform.model.history import HistoryEntry, LoggedEvent, OperationRecord, Touch
    from fleetform.model.live import Live, LiveResource
    from fleetform.model.offers import TriedOffer
    from fleetform.model.override import Override, PastOverride
    from fleetform.model.overview import Overview
    from fleetform.model.ports import RunHistory, RunQuery
    from fleetform.model.run import ArrayFacts, RunUid
    from fleetform.model.scheduler_state import SchedulerState
    from fleetform.model.volume import Snapshot
    from fleetform.spec.desired import ResourceKey
    from fleetform.store.backup import Head
    from fleetform.store.statements import Storage
    from fleetform.store.verifying import Flaw

__all__ = ["Reads", "open_snapshot"]


class Reads:
    """
    Implements `model.ports.Reader` on one connection.

    Each method imports what it returns: a plan needs no values of runs, and `ps` none of a plan.
    """

    def __init__(self, database: Storage) -> None:
        self._database = database

    @property
    def poll_seconds(self) -> float:
        return self._database.poll_seconds

    def serial(self) -> int:
        return self._database.serial()

    def commits(self) -> int:
        with self._database.read() as connection:
            (number,) = connection.execute("SELECT serial FROM meta").fetchone()
        return int(number)

    def glance(self) -> int | None:
        return self._database.glance()

    def read_standing(self) -> Standing:
        with self._database.read() as connection:
            uid, ledger_id, epoch, serial, status, note = connection.execute(
                "SELECT environment_uid, ledger_id, epoch, serial, status, note FROM meta"
            ).fetchone()
        return Standing(uid, ledger_id, epoch, serial, LedgerStatus(status), note)

    def read_live(self, known: Mapping[ResourceKey, str] | None = None) -> Live:
        from fleetform.store.live import read_live

        with self._database.read() as connection:
            return read_live(connection, known, self._read_rows)

    def _read_rows(self, serial: int) -> Mapping[ResourceKey, LiveResource]:
        """
        Read all rows of resources, in the state that this serial names.

        Raises:
            RowsOutdated: Another process has committed since.
        """
        from fleetform.store.live import read_rows

        with self._database.read() as connection:
            return read_rows(connection, serial)

    def read_book(
        self, only: Sequence[RunUid] | None = None, instances: Sequence[str] | None = None
    ) -> SchedulerState:
        from fleetform.store.scheduler_state import read_book

        with self._database.read() as connection:
            return read_book(connection, only, instances)

    def read_runs(
        self, names: Sequence[str] | None = None, *, earlier: bool = False
    ) -> tuple[RunHistory, ...]:
        """
        Read runs with all their attempts, in order of number.

        Args:
            names: Of runs, or of sweeps and arrays as a whole. None: all there are.
            earlier: Also runs whose place another of the same name has taken.
        """
        from fleetform.store.scheduler_state import read_histories

        with self._database.read() as connection:
            return read_histories(connection, names, earlier=earlier)

    def read_run_page(self, query: RunQuery) -> tuple[RunHistory, ...]:
        """Read some of the runs with all their attempts, in order of number."""
        from fleetform.store.scheduler_state import read_history_page

        with self._database.read() as connection:
            return read_history_page(connection, query)

    def read_array(self, name: str) -> ArrayFacts:
        """Read the number of an array's first run, and the indices of its elements now."""
        from fleetform.store.scheduler_state import read_array

        with self._database.read() as connection:
            return read_array(connection, name)

    def read_events(
        self, *, run: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[LoggedEvent, ...]:
        """Read events with a number above `after`, oldest first; a sweep's with its elements'."""
        from fleetform.store.history import read_events

        with self._database.read() as connection:
            return read_events(connection, run=run, after=after, limit=limit)

    def read_resource_events(
        self, key: ResourceKey, *, limit: int = 1000
    ) -> tuple[LoggedEvent, ...]:
        """Read the latest events of one resource, oldest first."""
        from fleetform.store.history import read_resource_events

        with self._database.read() as connection:
            return read_resource_events(connection, key, limit=limit)

    def read_overview(self) -> Overview:
        """Count runs, hosts and open work, and name the first that need attention."""
        from fleetform.store.overview import read_overview

        with self._database.read() as connection:
            return read_overview(connection)

    def read_spending(self) -> Spending:
        """Read how long hosts of clouds existed, and which jobs ran on them."""
        from fleetform.store.cost import read_spending

        with self._database.read() as connection:
            return read_spending(connection)

    def read_plan(self, digest: str) -> bytes | None:
        from fleetform.store.history import read_plan

        with self._database.read() as connection:
            return read_plan(connection, digest)

    def read_applies(self, *, limit: int = 50) -> tuple[ApplyRecord, ...]:
        """Read the newest applies, newest first."""
        from fleetform.store.history import read_applies

        with self._database.read() as connection:
            return read_applies(connection, "ORDER BY number DESC LIMIT ?", limit)

    def read_applies_of(self, digest: str) -> tuple[ApplyRecord, ...]:
        """Read every apply of one plan, newest first."""
        from fleetform.store.history import read_applies

        with self._database.read() as connection:
            return read_applies(connection, "WHERE plan_digest = ? ORDER BY number DESC", digest)

    def read_apply(self, uid: str) -> ApplyRecord | None:
        """Read one apply by its uid."""
        from fleetform.store.history import read_applies

        with self._database.read() as connection:
            return next(iter(read_applies(connection, "WHERE uid = ?", uid)), None)

    def read_overrides(self) -> tuple[Override, ...]:
        """Read the overrides that were not lifted, by number."""
        from fleetform.store.overrides import read_overrides

        with self._database.read() as connection:
            return read_overrides(connection)

    def read_offers(self, fleet: str) -> tuple[TriedOffer, ...]:
        """Read the offers of a fleet on a cloud in the order in which they are tried."""
        from fleetform.store.offers import read_offers

        with self._database.read() as connection:
            return read_offers(connection, fleet)

    def read_past_overrides(self, *, limit: int | None = 50) -> tuple[PastOverride, ...]:
        """Read the newest, newest first, whatever became of them; None: all."""
        from fleetform.store.overrides import read_past_overrides

        with self._database.read() as connection:
            return read_past_overrides(connection, limit=limit)

    def read_noted(self) -> Mapping[ResourceKey, Mapping[str, Noted]]:
        """Read what was right at the last refresh."""
        from fleetform.store.observations import read_observations

        with self._database.read() as connection:
            return read_observations(connection)

    def read_last_changes(self) -> Mapping[ResourceKey, Noted]:
        """Read who has last changed each fleet and volume through us."""
        from fleetform.store.observations import last_changes

        with self._database.read() as connection:
            return last_changes(connection)

    def read_known_runs(self, uids: Iterable[str]) -> frozenset[str]:
        """Tell which of these runs the ledger knows."""
        from fleetform.store.observations import read_known_runs

        with self._database.read() as connection:
            return read_known_runs(connection, uids)

    def read_known_instances(self, uids: Iterable[str]) -> frozenset[str]:
        """See `model.ports.Reader.read_known_instances`."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT uid FROM instances WHERE uid IN (SELECT value FROM json_each(?))",
                (json.dumps([*uids]),),
            )
            return frozenset(uid for (uid,) in rows)

    def read_snapshots(self) -> tuple[Snapshot, ...]:
        """Read the snapshots of volumes, newest first."""
        from fleetform.store.volumes import read_snapshots

        with self._database.read() as connection:
            return read_snapshots(connection)

    def read_history(
        self, *, limit: int = 50, applies_only: bool = False
    ) -> tuple[HistoryEntry, ...]:
        """Read what was planned and applied, newest first."""
        from fleetform.store.history import read_history

        with self._database.read() as connection:
            return read_history(connection, limit=limit, applies_only=applies_only)

    def find_digests(self, prefix: str) -> tuple[str, ...]:
        """Name up to two plans whose digest begins so."""
        from fleetform.store.history import find_digests

        with self._database.read() as connection:
            return find_digests(connection, prefix)

    def read_operations(self, apply_uid: str) -> tuple[OperationRecord, ...]:
        """Read the steps of an apply, by key."""
        from fleetform.store.history import read_operations

        with self._database.read() as connection:
            return read_operations(connection, apply_uid)

    def read_touches(self, key: ResourceKey, *, limit: int = 100) -> tuple[Touch, ...]:
        """Read the applies that did something to a resource, newest first, with their plans."""
        from fleetform.store.history import read_touches

        with self._database.read() as connection:
            return read_touches(connection, key, limit=limit)

    def backup(self, path: Path, *, who: str, now_ms: int) -> Head:
        """Write one reading of the whole ledger into a file; others go on writing meanwhile."""
        from fleetform.store.backup import write_backup

        with self._database.read() as connection:
            return write_backup(connection, path, who=who, now_ms=now_ms)

    def flaws(self) -> tuple[Flaw, ...]:
        """Look for what no sound ledger has, in its file and between its rows."""
        from fleetform.store.verifying import find_flaws

        of_file = self._database.flaws()
        with self._database.read() as connection:
            return find_flaws(connection, of_file)

    def close(self) -> None:
        self._database.close()


# A ledger opened for reading only: the path of the CLI and the API.
# Read-only by the driver (`mode=ro`), and next to a writer: WAL lets it read the last committed state without waiting.


def open_snapshot(path: Path, environment_uid: str) -> Reads:
    """
    Open the ledger at `path` for reading.

    Raises:
        MissingLedgerError: There is none; nothing has been applied yet.
        OlderLedgerError: An earlier release wrote it, and it is not upgraded yet.
        LedgerError: It is damaged, newer, or another environment's.
    """
    require_sound(path)
    connection = connect_reading(path)
    try:
        require_current(connection, path, environment_uid)
    except BaseException:
        connection.close()
        raise
    return Reads(Database(connection))

"""
What can be read of a ledger: the half that writer and snapshot share.

Each call is one state of the ledger, whatever is committed meanwhile. Documents are parsed for
runs that are asked for and never for a plan, which compares digests.
"""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Database

if TYPE_CHECKING:
    from fleetform.model.event import LoggedEvent
    from fleetform.model.live import Live
    from fleetform.model.ports import ApplyRecord, Book, RunHistory
    from fleetform.model.run import RunUid

__all__ = ["Reads"]


class Reads:
    """
    Implements `model.ports.Reader` on one connection.

    Each reading imports what it makes: a plan needs no values of runs, and `ps` none of a plan.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def serial(self) -> int:
        """Return SQLite's own count of what other connections committed."""
        with self._database.lock:
            (version,) = self._database.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def read_live(self) -> Live:
        from fleetform.store.live import read_live

        with self._database.read() as connection:
            return read_live(connection)

    def read_book(self, only: Sequence[RunUid] | None = None) -> Book:
        from fleetform.store.book import read_book

        with self._database.read() as connection:
            return read_book(connection, only)

    def read_runs(
        self, names: Sequence[str] | None = None, *, earlier: bool = False
    ) -> tuple[RunHistory, ...]:
        """
        Read runs with all their attempts, in order of number.

        Args:
            names: Of runs, or of sweeps and arrays as a whole. None: all there are.
            earlier: Also runs whose place another of the same name has taken.
        """
        from fleetform.store.book import read_histories

        with self._database.read() as connection:
            return read_histories(connection, names, earlier=earlier)

    def read_events(
        self, *, run: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[LoggedEvent, ...]:
        """Read events with a number above `after`, oldest first; a sweep's with its elements'."""
        from fleetform.model.event import LoggedEvent

        condition, values = "number > ?", [after]
        if run is not None:
            # `[` and the character after it: the names of all elements lie between.
            condition += (
                " AND resource_kind = 'run'"
                " AND (resource_name = ? OR resource_name >= ? AND resource_name < ?)"
            )
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT kind, at_ms, message, resource_kind, resource_name, attempt, rank, data,"
                f" number FROM events WHERE {condition} ORDER BY number LIMIT ?",
                (*values, *((run, f"{run}[", f"{run}\\") if run is not None else ()), limit),
            ).fetchall()
        return tuple(
            LoggedEvent(
                kind,
                at_ms,
                message,
                ResourceKey(resource_kind, name) if resource_kind else None,
                attempt,
                rank,
                json.loads(data) if data else {},
                number,
            )
            for kind, at_ms, message, resource_kind, name, attempt, rank, data, number in rows
        )

    def read_plan(self, digest: str) -> bytes | None:
        with self._database.read() as connection:
            row = connection.execute("SELECT body FROM plans WHERE digest = ?", (digest,))
            found = row.fetchone()
        return None if found is None else bytes(found[0])

    def read_applies(self, *, limit: int = 50) -> tuple[ApplyRecord, ...]:
        """Read the newest applies, newest first."""
        from fleetform.model.ports import ApplyRecord

        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT uid, plan_digest, state, who, tree_commit, started_at_ms, finished_at_ms,"
                " summary FROM applies ORDER BY number DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return tuple(ApplyRecord(*row) for row in rows)

    def close(self) -> None:
        self._database.close()

"""
What can be read of a ledger: the half that writer and snapshot share.

Each call is one state of the ledger, whatever is committed meanwhile. Documents are parsed for
runs that are asked for and never for a plan, which compares digests.
"""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from fleetform.model.event import LoggedEvent
from fleetform.model.instance import Instance
from fleetform.model.live import LedgerStatus, Live, LiveResource, LiveRun
from fleetform.model.ports import ApplyRecord, Book, Outcome, RunHistory
from fleetform.model.run import Attempt, Job, Run, RunUid
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.store.database import Database
from fleetform.store.rows import (
    ALLOCATION,
    ATTEMPT,
    INSTANCE,
    JOB,
    RUN,
    RUN_STATES,
    allocation_of,
    attempt_of,
    instance_of,
    job_of,
    prefixed,
    run_of,
)

__all__ = ["Reads"]


class Reads:
    """Implements `model.ports.Reader` on one connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def serial(self) -> int:
        """Return SQLite's own count of what other connections committed."""
        with self._database.lock:
            (version,) = self._database.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def read_live(self) -> Live:
        with self._database.read() as connection:
            return _live(connection)

    def read_book(self, only: Sequence[RunUid] | None = None) -> Book:
        with self._database.read() as connection:
            return _book(connection, only)

    def read_runs(
        self, names: Sequence[str] | None = None, *, earlier: bool = False
    ) -> tuple[RunHistory, ...]:
        """
        Read runs with all their attempts, in order of number.

        Args:
            names: Of runs, or of sweeps and arrays as a whole. None: all there are.
            earlier: Also runs whose place another of the same name has taken.
        """
        with self._database.read() as connection:
            return _histories(connection, names, earlier=earlier)

    def read_events(
        self, *, run: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[LoggedEvent, ...]:
        """Read events with a number above `after`, oldest first; a sweep's with its elements'."""
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
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT uid, plan_digest, state, who, tree_commit, started_at_ms, finished_at_ms,"
                " summary FROM applies ORDER BY number DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return tuple(ApplyRecord(*row) for row in rows)

    def close(self) -> None:
        self._database.close()


# -- live ---------------------------------------------------------------------------------

_INSTANCES = (
    f"SELECT {', '.join(INSTANCE)} FROM instances WHERE state <> 'terminated'"
    " ORDER BY fleet, number"
)

_RESOURCES = (
    "SELECT s.kind, s.name, s.uid, s.generation, s.digest, s.execution_digest, s.own_digest,"
    " s.document, s.type, s.state, s.archived, s.protected, s.parent, s.element, s.operation,"
    " r.state, r.attempt, r.cause, r.message, r.started_at_ms, r.finished_at_ms, r.stale,"
    " s.rerun_mark"
    " FROM resources s LEFT JOIN runs r ON r.uid = s.uid AND s.kind = 'run'"
    " ORDER BY s.kind, s.name"
)


def _live(connection: sqlite3.Connection) -> Live:
    environment_uid, ledger_id, epoch, status, note, serial, rules, fence = connection.execute(
        "SELECT environment_uid, ledger_id, epoch, status, note, serial, rules, fence FROM meta"
    ).fetchone()
    gpus = dict(
        connection.execute(
            "SELECT run_uid, sum(gpus_count) FROM allocations WHERE gpus_count > 0 GROUP BY run_uid"
        )
    )
    instances = _instances(connection)
    return Live(
        environment_uid=environment_uid,
        ledger_id=ledger_id,
        epoch=epoch,
        status=LedgerStatus(status),
        serial=serial,
        resources=_resources(connection, gpus),
        instances=instances,
        rules=Rules(**json.loads(rules)) if rules else None,
        fence=fence,
        notes=_notes(note, instances),
    )


def _resources(
    connection: sqlite3.Connection, gpus: Mapping[str, int]
) -> dict[ResourceKey, LiveResource]:
    resources = {}
    for row in connection.execute(_RESOURCES):
        (kind, name, uid, generation, digest, execution, own, document, type_, state, archived,
         protected, parent, element, operation, run_state, attempt, cause, message, started,
         finished, stale, rerun_mark) = row  # fmt: skip
        run = None
        if run_state is not None:
            run = LiveRun(
                RUN_STATES[run_state], attempt, cause, message, started, finished,
                gpus.get(uid, 0), bool(stale), rerun_mark,
            )  # fmt: skip
        key = ResourceKey(kind, name)
        # By position: ten thousand of them are read for a plan in which nothing has changed.
        resources[key] = LiveResource(
            key, uid, generation, digest, execution, own, document, type_, state,
            bool(archived), bool(protected), parent, element, operation, run,
        )  # fmt: skip
    return resources


def _instances(connection: sqlite3.Connection) -> tuple[Instance, ...]:
    return tuple(instance_of(row) for row in connection.execute(_INSTANCES))


def _notes(note: str, instances: Iterable[Instance]) -> tuple[str, ...]:
    silent = (
        f"host {one.name} is silent: {one.message}" if one.message else f"host {one.name} is silent"
        for one in instances
        if one.state.value == "unreachable"
    )
    return (note, *silent) if note else tuple(silent)


# -- book ---------------------------------------------------------------------------------

_THESE = "r.uid IN (SELECT value FROM json_each(?1))"


def _book(connection: sqlite3.Connection, only: Sequence[RunUid] | None) -> Book:
    """Read the open runs, or those of `only`; statements differ in that condition alone."""
    which, values = ("TRUE", ()) if only is None else (_THESE, (json.dumps(list(only)),))
    (serial,) = connection.execute("SELECT serial FROM meta").fetchone()
    runs = {
        RunUid(row[0]): run_of(row)
        for row in connection.execute(
            f"SELECT {prefixed('r', RUN)} FROM runs r WHERE r.final = 0 AND {which}"
            " ORDER BY r.number",
            values,
        )
    }
    jobs = _by_run(
        connection.execute(
            f"SELECT {prefixed('j', JOB)} FROM runs r JOIN jobs j"
            " ON j.run_uid = r.uid AND j.attempt = r.attempt"
            f" WHERE r.final = 0 AND {which} ORDER BY j.run_uid, j.rank",
            values,
        )
    )
    attempts = {
        RunUid(row[0]): attempt_of(row, jobs.get(row[0], ()))
        for row in connection.execute(
            f"SELECT {prefixed('a', ATTEMPT)} FROM runs r JOIN attempts a"
            " ON a.run_uid = r.uid AND a.number = r.attempt"
            f" WHERE r.final = 0 AND {which} ORDER BY r.number",
            values,
        )
    }
    return Book(
        serial=serial,
        runs=runs,
        attempts=attempts,
        lingering=_lingering(connection, which, values),
        instances=_instances(connection),
        allocations=tuple(
            allocation_of(row)
            for row in connection.execute(
                f"SELECT {', '.join(ALLOCATION)} FROM allocations r WHERE "
                f"{which.replace('r.uid', 'r.run_uid')} ORDER BY instance_uid, job_uid",
                values,
            )
        ),
        outcomes=_outcomes(connection, which, values),
        volume_fleets=_volume_fleets(connection) if only is None else {},
    )


def _lingering(
    connection: sqlite3.Connection, which: str, values: Sequence[str]
) -> tuple[Job, ...]:
    # The partial index holds what hosts still keep; without the hint all runs would be read.
    hint = "INDEXED BY jobs_kept" if not values else ""
    rows = connection.execute(
        f"SELECT {prefixed('j', JOB)} FROM jobs j {hint} JOIN runs r ON r.uid = j.run_uid"
        f" WHERE j.forgotten = 0 AND (r.final = 1 OR j.attempt <> r.attempt) AND {which}"
        " ORDER BY j.run_uid, j.attempt, j.rank",
        values,
    )
    return tuple(job_of(row) for row in rows)


def _outcomes(
    connection: sqlite3.Connection, which: str, values: Sequence[str]
) -> dict[str, Outcome]:
    rows = connection.execute(
        "SELECT r.name, r.state, r.parent, r.element, r.started_at_ms IS NOT NULL"
        f" FROM runs r WHERE r.listed = 1 AND {which} ORDER BY r.number",
        values,
    )
    return {
        name: Outcome(RUN_STATES[state], parent, element, bool(started))
        for name, state, parent, element, started in rows
    }


def _volume_fleets(connection: sqlite3.Connection) -> dict[str, str]:
    # One that is being made for the first time has no document yet.
    rows = connection.execute(
        "SELECT name, document ->> 'fleet' AS fleet FROM resources"
        " WHERE kind = 'volume' AND fleet IS NOT NULL ORDER BY name"
    )
    return dict(rows.fetchall())


def _by_run(rows: Iterable[Sequence[object]]) -> dict[str, list[Job]]:
    jobs: dict[str, list[Job]] = {}
    for row in rows:
        job = job_of(row)
        jobs.setdefault(job.key.run_uid, []).append(job)
    return jobs


# -- runs for people ----------------------------------------------------------------------


def _histories(
    connection: sqlite3.Connection, names: Sequence[str] | None, *, earlier: bool
) -> tuple[RunHistory, ...]:
    conditions, values = [], []
    if not earlier:
        conditions.append("(r.listed = 1 OR s.uid IS NOT NULL)")
    if names is not None:
        conditions.append(
            "r.number IN (SELECT number FROM runs, json_each(?1) WHERE runs.name = value"
            " UNION SELECT number FROM runs, json_each(?1) WHERE runs.parent = value)"
        )
        values.append(json.dumps(list(names)))
    rows = connection.execute(
        f"SELECT {prefixed('r', RUN)}, s.archived, r.tree_commit, r.execution_digest"
        " FROM runs r LEFT JOIN resources s"
        " ON s.kind = 'run' AND s.name = r.name AND s.uid = r.uid"
        f" WHERE {' AND '.join(conditions) or 'TRUE'} ORDER BY r.number",
        values,
    ).fetchall()
    runs = [run_of(row[: len(RUN)]) for row in rows]
    attempts = _attempts(connection, runs)
    return tuple(
        RunHistory(run, tuple(attempts.get(run.uid, ())), bool(archived), commit, digest)
        for run, (archived, commit, digest) in zip(
            runs, (row[len(RUN) :] for row in rows), strict=True
        )
    )


def _attempts(connection: sqlite3.Connection, runs: Sequence[Run]) -> dict[str, list[Attempt]]:
    """Read every attempt of these runs, with jobs."""
    values = (json.dumps([run.uid for run in runs]),)
    condition = "run_uid IN (SELECT value FROM json_each(?1))"
    jobs: dict[tuple[str, int], list[Job]] = {}
    for row in connection.execute(
        f"SELECT {', '.join(JOB)} FROM jobs WHERE {condition} ORDER BY run_uid, attempt, rank",
        values,
    ):
        job = job_of(row)
        jobs.setdefault(job.key[:2], []).append(job)
    attempts: dict[str, list[Attempt]] = {}
    for row in connection.execute(
        f"SELECT {', '.join(ATTEMPT)} FROM attempts WHERE {condition} ORDER BY run_uid, number",
        values,
    ):
        attempts.setdefault(row[0], []).append(attempt_of(row, jobs.get(row[:2], ())))
    return attempts

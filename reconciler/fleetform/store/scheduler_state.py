"""
Runs read from the ledger: the book of what is not over, and histories for people.
"""

from __future__ import annotations

import json

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.model.ports import RunHistory
from fleetform.model.run import ArrayFacts, Attempt, Job, Run, RunUid
from fleetform.model.run_state import Outdated, RunState
from fleetform.model.scheduler_state import Outcome, SchedulerState
from fleetform.store.instances import read_instances
from fleetform.store.lineage import read_abort_reasons, read_outdated
from fleetform.store.overrides import read_overrides
from fleetform.store.rollouts import read_templates
from fleetform.store.run_state import RUN_STATES
from fleetform.store.runs import (
    ALLOCATION,
    ATTEMPT,
    JOB,
    RUN,
    allocation_of,
    attempt_of,
    job_of,
    prefixed,
    run_of,
)
from fleetform.store.scaling import read_hostless_fleets, read_scaling
from fleetform.store.volume_hosts import (
    leaving_volumes,
    read_network_volumes,
    read_volume_hosts,
)

if TYPE_CHECKING:
    from fleetform.model.ports import RunQuery
    from fleetform.store.database import Transaction
    from fleetform.store.statements import Statements

__all__ = [
    "read_array",
    "read_book",
    "read_histories",
    "read_history_page",
    "read_master_ports",
    "read_queues",
]


_THESE = "r.uid IN (SELECT value FROM json_each(?1))"


def read_book(
    connection: Statements, only: Sequence[RunUid] | None, instances: Sequence[str] | None
) -> SchedulerState:
    """Read the open runs, or those of `only`; statements differ in that condition alone."""
    which, values = ("TRUE", ()) if only is None else (_THESE, (json.dumps(list(only)),))
    serial, environment_uid = connection.execute(
        "SELECT serial, environment_uid FROM meta"
    ).fetchone()
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
    queue_fleets, default_queue = read_queues(connection) if only is None else ({}, "")
    return SchedulerState(
        serial=serial,
        runs=runs,
        attempts=attempts,
        lingering=_lingering(connection, which, values),
        instances=read_instances(connection, instances),
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
        volume_hosts=read_volume_hosts(connection) if only is None else {},
        disks=read_network_volumes(connection) if only is None else {},
        leaving_volumes=leaving_volumes(connection) if only is None else frozenset(),
        templates=read_templates(connection) if not only and instances is None else {},
        overrides=read_overrides(connection),
        queue_fleets=queue_fleets,
        default_queue=default_queue,
        scaling=read_scaling(connection) if not only and instances is None else {},
        hostless_fleets=read_hostless_fleets(connection) if not only else frozenset(),
        master_ports=read_master_ports(connection, which, values),
        environment_uid=environment_uid,
    )


def read_array(connection: Statements, name: str) -> ArrayFacts:
    """Read an array by its own name; elements that are no whole numbers are those of a sweep."""
    rows = list(
        connection.execute("SELECT number, element, listed FROM runs WHERE parent = ?", (name,))
    )
    elements = (element for _, element, listed in rows if listed and element.isdecimal())
    return ArrayFacts(
        min((number for number, *_ in rows), default=0), tuple(sorted(map(int, elements)))
    )


def _lingering(connection: Statements, which: str, values: Sequence[str]) -> tuple[Job, ...]:
    # The partial index holds what hosts still keep; without the hint all runs would be read.
    hint = "INDEXED BY jobs_kept" if not values else ""
    rows = connection.execute(
        f"SELECT {prefixed('j', JOB)} FROM jobs j {hint} JOIN runs r ON r.uid = j.run_uid"
        f" WHERE j.forgotten = 0 AND (r.final = 1 OR j.attempt <> r.attempt) AND {which}"
        " ORDER BY j.run_uid, j.attempt, j.rank",
        values,
    )
    return tuple(job_of(row) for row in rows)


def read_master_ports(
    connection: Statements | Transaction, which: str = "TRUE", values: Sequence[str] = ()
) -> dict[RunUid, int]:
    """Read the port of each attempt of which a job may still run, by its run."""
    # The partial index has the jobs that may run; without the hint all attempts would be read.
    hint = "INDEXED BY jobs_placed" if not values else ""
    rows = connection.execute(
        f"SELECT DISTINCT r.uid, a.master_port FROM jobs j {hint} JOIN runs r ON r.uid = j.run_uid"
        " JOIN attempts a ON a.run_uid = j.run_uid AND a.number = j.attempt"
        " WHERE j.instance_uid <> '' AND j.state <> 'finished' AND a.master_port IS NOT NULL"
        f" AND {which} ORDER BY r.uid",
        values,
    )
    return {RunUid(uid): port for uid, port in rows}


def _outcomes(connection: Statements, which: str, values: Sequence[str]) -> dict[str, Outcome]:
    rows = connection.execute(
        "SELECT r.name, r.state, r.parent, r.element, r.started_at_ms IS NOT NULL"
        f" FROM runs r WHERE r.listed = 1 AND {which} ORDER BY r.number",
        values,
    )
    return {
        name: Outcome(RUN_STATES[state], parent, element, bool(started))
        for name, state, parent, element, started in rows
    }


def _volume_fleets(connection: Statements) -> dict[str, str]:
    # A tombstone is one that is being created, or could not be.
    rows = connection.execute(
        "SELECT name, document FROM resources WHERE kind = 'volume' AND archived = 0 ORDER BY name"
    )
    fleets = ((name, json.loads(document).get("fleet")) for name, document in rows)
    return {name: fleet for name, fleet in fleets if fleet is not None}


def _by_run(rows: Iterable[Sequence[object]]) -> dict[str, list[Job]]:
    jobs: dict[str, list[Job]] = {}
    for row in rows:
        job = job_of(row)
        jobs.setdefault(job.key.run_uid, []).append(job)
    return jobs


# -- runs for people ----------------------------------------------------------------------


def read_histories(
    connection: Statements, names: Sequence[str] | None, *, earlier: bool
) -> tuple[RunHistory, ...]:
    conditions: list[str] = []
    values: list[str] = []
    if not earlier:
        conditions.append("(r.listed = 1 OR s.uid IS NOT NULL)")
    if names is not None:
        conditions.append(
            "r.number IN (SELECT number FROM runs, json_each(?1) WHERE runs.name = value"
            " UNION SELECT number FROM runs, json_each(?1) WHERE runs.parent = value)"
        )
        values.append(json.dumps(list(names)))
    return _histories(connection, " AND ".join(conditions) or "TRUE", values)


def read_history_page(connection: Statements, query: RunQuery) -> tuple[RunHistory, ...]:
    """Read what `query` asks for, of the runs that have their place."""
    conditions: list[str] = ["(r.listed = 1 OR s.uid IS NOT NULL)", "r.number > ?"]
    values: list[str | int] = [query.after]
    if query.states:
        conditions.append(f"r.state IN ({', '.join('?' for _ in query.states)})")
        values += [state.value for state in query.states]
    if query.parent is not None:
        conditions.append("r.parent = ?")
        values.append(query.parent)
    if not query.archived:
        conditions.append("COALESCE(s.archived, 0) = 0")
    values.append(query.limit)
    return _histories(connection, " AND ".join(conditions), values, "LIMIT ?")


def _histories(
    connection: Statements, condition: str, values: Sequence[str | int], limit: str = ""
) -> tuple[RunHistory, ...]:
    rows = connection.execute(
        f"SELECT {prefixed('r', RUN)}, s.archived, r.tree_commit, r.execution_digest, r.stale"
        " FROM runs r LEFT JOIN resources s"
        " ON s.kind = 'run' AND s.name = r.name AND s.uid = r.uid"
        f" WHERE {condition} ORDER BY r.number {limit}",
        values,
    ).fetchall()
    runs = _with_abort_reasons(connection, [run_of(row[: len(RUN)]) for row in rows])
    attempts = _attempts(connection, runs)
    hosts = dict(connection.execute("SELECT uid, name FROM instances").fetchall())
    outdated = read_outdated(connection)
    return tuple(
        RunHistory(
            run,
            tuple(attempts.get(run.uid, ())),
            bool(archived),
            commit,
            digest,
            hosts,
            Outdated(stale),
            # Results of now matter to the run of the configuration, not to an earlier one.
            outdated.get(run.name, ()) if archived == 0 else (),
        )
        for run, (archived, commit, digest, stale) in zip(
            runs, (row[len(RUN) :] for row in rows), strict=True
        )
    )


def _with_abort_reasons(connection: Statements, runs: list[Run]) -> list[Run]:
    if not any(run.state is RunState.ABORTED for run in runs):
        return runs
    reasons = read_abort_reasons(connection)
    return [replace(run, message=reasons[run.uid]) if run.uid in reasons else run for run in runs]


def _attempts(connection: Statements, runs: Sequence[Run]) -> dict[str, list[Attempt]]:
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


# Which fleets a queue leads to; its row is its document, which `document_rows` writes.


def read_queues(connection: Statements) -> tuple[dict[str, tuple[str, ...]], str]:
    """Read the fleets of each queue, by its name, and the name of the default queue or nothing."""
    fleets: dict[str, tuple[str, ...]] = {}
    default = ""
    for name, text in connection.execute(
        "SELECT name, document FROM resources WHERE kind = 'queue' ORDER BY name"
    ):
        document = json.loads(text)
        fleets[name] = tuple(document.get("fleets", ()))
        if document.get("default"):
            default = name
    return fleets, default

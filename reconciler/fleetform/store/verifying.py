"""
What no sound ledger has: looked for between its rows, after the database has looked at itself.

Each check is one function with its own sentence, and none changes anything. Documents and plans
are read and their digests made anew: a row that was edited by hand shows by that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.model.run_state import FINAL
from fleetform.plan.serialize import load as load_plan
from fleetform.spec.canonical import digest
from fleetform.store.errors import RESTORE
from fleetform.store.history import unpack

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = [
    "CHECKS",
    "Flaw",
    "check_allocations",
    "check_documents",
    "check_identity",
    "check_jobs",
    "check_operations",
    "check_plans",
    "check_runs_final",
    "check_runs_listed",
    "check_runs_rows",
    "check_units",
    "find_flaws",
]

_REBUILD = "`fleetform state rebuild` asks the hosts"
_REPORT = "fleetform never writes that: report it, and restore an earlier backup"


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong: `check` is a stable code, `cure` what to do."""

    check: str
    what: str
    cure: str


def find_flaws(connection: Statements, of_file: Sequence[str]) -> tuple[Flaw, ...]:
    """Return all that is wrong, in the order of the checks; empty for a sound ledger."""
    flaws = [Flaw("file", one, RESTORE) for one in of_file]
    for check in CHECKS:
        flaws.extend(check(connection))
    return tuple(flaws)


def check_identity(connection: Statements) -> Iterator[Flaw]:
    """One row says whose ledger it is."""
    rows = connection.execute(
        "SELECT environment_uid, ledger_id, epoch, fence FROM meta"
    ).fetchall()
    if len(rows) != 1 or not all(rows[0][:2]) or rows[0][2] < 1 or rows[0][3] < 0:
        yield Flaw("identity", "it has no environment uid or no epoch", RESTORE)


def check_runs_listed(connection: Statements) -> Iterator[Flaw]:
    """Of runs of one name, one is the one that people mean."""
    for name, count in connection.execute(
        "SELECT name, count(*) FROM runs WHERE listed = 1 GROUP BY name HAVING count(*) > 1"
        " ORDER BY name"
    ).fetchall():
        yield Flaw("runs-listed", f"{count} runs are listed as {name}", _REPORT)


def check_runs_rows(connection: Statements) -> Iterator[Flaw]:
    """Each run of the tree has its row under its own name, and each row its latest attempt."""
    for (name,) in connection.execute(
        "SELECT s.name FROM resources s LEFT JOIN runs r ON r.uid = s.uid AND r.name = s.name"
        " WHERE s.kind = 'run' AND r.uid IS NULL ORDER BY s.name"
    ).fetchall():
        yield Flaw("runs-rows", f"run/{name} is applied, and no run of that name exists", _REBUILD)
    for name, attempt, latest in connection.execute(
        "SELECT r.name, r.attempt, max(a.number) FROM runs r JOIN attempts a ON a.run_uid = r.uid"
        " GROUP BY r.uid, r.name, r.attempt HAVING max(a.number) <> r.attempt ORDER BY r.name"
    ).fetchall():
        yield Flaw("runs-rows", f"run {name} is at attempt {attempt} and has {latest}", _REPORT)


def check_runs_final(connection: Statements) -> Iterator[Flaw]:
    """What is over says so in both columns; what cannot be proven counts as over."""
    over = ", ".join(f"'{state}'" for state in sorted(FINAL))
    for name, state, final in connection.execute(
        "SELECT name, state, final FROM runs WHERE"  # noqa: S608 -- constants of ours
        f" (final = 1 AND state NOT IN ({over}, 'unknown')) OR (final = 0 AND state IN ({over}))"
        " ORDER BY name"
    ).fetchall():
        yield Flaw("runs-final", f"run {name} is {state}, and final is {final}", _REPORT)


def check_jobs(connection: Statements) -> Iterator[Flaw]:
    """Jobs count from generation 1, and one that is on its way is on a host that is known."""
    for uid, attempt, rank in connection.execute(
        "SELECT run_uid, attempt, rank FROM jobs WHERE gen < 1 ORDER BY run_uid, attempt, rank"
    ).fetchall():
        yield Flaw("jobs", f"job {rank} of attempt {attempt} of {uid} has no generation", _REPORT)
    for uid, attempt, rank, state in connection.execute(
        "SELECT j.run_uid, j.attempt, j.rank, j.state FROM jobs j"
        " LEFT JOIN instances i ON i.uid = j.instance_uid"
        " WHERE j.state NOT IN ('waiting', 'finished') AND i.uid IS NULL"
        " ORDER BY j.run_uid, j.attempt, j.rank"
    ).fetchall():
        what = f"job {rank} of attempt {attempt} of {uid} is {state} on no known host"
        yield Flaw("jobs", what, _REBUILD)


def check_allocations(connection: Statements) -> Iterator[Flaw]:
    """Only a job that may run holds units, on the host that it is on."""
    for job_uid, state, placed, held in connection.execute(
        "SELECT l.job_uid, j.state, j.instance_uid, l.instance_uid FROM allocations l"
        " LEFT JOIN jobs j ON j.uid = l.job_uid"
        " WHERE j.uid IS NULL OR j.state IN ('waiting', 'finished')"
        " OR j.instance_uid <> l.instance_uid ORDER BY l.job_uid"
    ).fetchall():
        what = f"units of {held} are allocated to job {job_uid}, which is {state or 'not in the ledger'}"
        more = f" on {placed}" if placed else ""
        yield Flaw("allocations", f"{what}{more}", _REBUILD)


def check_units(connection: Statements) -> Iterator[Flaw]:
    """No unit is held twice, and each by the allocation of its own host."""
    for instance, unit, count in connection.execute(
        "SELECT instance_uid, unit, count(*) FROM units GROUP BY instance_uid, unit"
        " HAVING count(*) > 1 ORDER BY instance_uid, unit"
    ).fetchall():
        yield Flaw("units", f"unit {unit} of {instance} is allocated {count} times", _REPORT)
    for instance, unit, job_uid in connection.execute(
        "SELECT u.instance_uid, u.unit, u.job_uid FROM units u"
        " LEFT JOIN allocations l ON l.job_uid = u.job_uid AND l.instance_uid = u.instance_uid"
        " WHERE l.job_uid IS NULL ORDER BY u.instance_uid, u.unit"
    ).fetchall():
        what = f"unit {unit} of {instance} is allocated to job {job_uid}, which has no allocation there"
        yield Flaw("units", what, _REPORT)


def check_operations(connection: Statements) -> Iterator[Flaw]:
    """What is open belongs to an apply that is not over, and so does each mark on a resource."""
    for key, state, apply_uid in connection.execute(
        "SELECT o.key, o.state, o.apply_uid FROM operations o"
        " LEFT JOIN applies a ON a.uid = o.apply_uid"
        " WHERE o.state IN ('planned', 'intended') AND (a.uid IS NULL OR a.state <> 'running')"
        " ORDER BY o.apply_uid, o.key"
    ).fetchall():
        yield Flaw(
            "operations", f"{key} is {state}, and its apply {apply_uid[:12]} has ended", _REPORT
        )
    for kind, name, apply_uid in connection.execute(
        "SELECT s.kind, s.name, s.operation FROM resources s"
        " LEFT JOIN applies a ON a.uid = s.operation AND a.state = 'running'"
        " WHERE s.operation <> '' AND a.uid IS NULL ORDER BY s.kind, s.name"
    ).fetchall():
        what = f"{kind}/{name} waits for apply {apply_uid[:12]}, which has ended"
        yield Flaw("operations", what, _REPORT)


def check_documents(connection: Statements) -> Iterator[Flaw]:
    """Documents are JSON, and their digests are the ones in their rows."""
    for kind, name, document, wanted in connection.execute(
        "SELECT kind, name, document, digest FROM resources WHERE state <> 'making'"
        " ORDER BY kind, name"
    ).fetchall():
        found = _digest_of(document)
        if found is None:
            yield Flaw("documents", f"the document of {kind}/{name} cannot be read", RESTORE)
        elif wanted and found != wanted:
            yield Flaw("documents", f"the document of {kind}/{name} was changed", RESTORE)


def _digest_of(document: str) -> str | None:
    try:
        return digest(json.loads(document))
    except (ValueError, TypeError):
        return None


def check_plans(connection: Statements) -> Iterator[Flaw]:
    """Each plan that was kept has its own digest."""
    digests = [row[0] for row in connection.execute("SELECT digest FROM plans ORDER BY digest")]
    for one in digests:
        # One at a time: a plan of ten thousand resources is 20 MB.
        row = connection.execute("SELECT body FROM plans WHERE digest = ?", (one,)).fetchone()
        try:
            same = load_plan(unpack(row[0])).digest == one
        except ValueError as problem:
            yield Flaw("plans", f"plan {one[:12]} cannot be read: {problem}", _KEPT)
            continue
        if not same:
            yield Flaw("plans", f"plan {one[:12]} is another one", _KEPT)


_KEPT = "applied resources are not affected; restore a backup if the history matters"


CHECKS: tuple[Callable[[Statements], Iterator[Flaw]], ...] = (
    check_identity,
    check_runs_listed,
    check_runs_rows,
    check_runs_final,
    check_jobs,
    check_allocations,
    check_units,
    check_operations,
    check_documents,
    check_plans,
)

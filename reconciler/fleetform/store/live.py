"""
What a plan compares with, read from the ledger.

A plan with nothing to do reads ten thousand rows of resources and one of an instance: no run's
document is parsed for it, and neither `rows` nor the values of runs are imported.
"""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fleetform.model.instance import Instance
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import EarlierRun, Live, LiveResource, LiveRun, Rows, RowsOutdated, Work
from fleetform.model.offers import TriedOffer
from fleetform.model.run_state import NO_EVIDENCE, Outdated
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.store.instances import read_instances
from fleetform.store.lineage import read_abort_reasons, read_lineage
from fleetform.store.observations import read_drift
from fleetform.store.overrides import read_overrides
from fleetform.store.rollouts import read_rollouts
from fleetform.store.run_state import RUN_STATES
from fleetform.store.volumes import read_left, read_retained_disks

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["read_live", "read_rows"]


_OUTDATED = tuple(Outdated)


_SELECT = (
    "SELECT s.kind, s.name, s.uid, s.generation, s.digest, s.execution_digest, s.own_digest,"
    " s.document, s.type, s.state, s.archived, s.protected, s.parent, s.element, s.operation,"
    " r.state, r.attempt, r.cause, r.message, r.started_at_ms, r.finished_at_ms, r.stale,"
    " s.rerun_mark, CASE WHEN r.final = 0 AND r.execution_digest <> s.execution_digest"
    " THEN r.document ELSE '' END, CASE WHEN s.kind = 'volume' THEN s.outputs ELSE '' END"
    " FROM resources s LEFT JOIN runs r ON r.uid = s.uid AND s.kind = 'run'"
)
# Rows that concern no plan as long as their digest is the declared one. A run that is done without evidence that it ran is
# left out: only a person can decide about it.
_UNCHANGED = (
    "s.archived = 0 AND s.operation = '' AND (s.kind <> 'run'"
    f" OR r.state = 'done' AND r.cause <> '{NO_EVIDENCE}' AND r.stale = 0)"
)
_UNCHANGED_DIGESTS = (
    "SELECT s.kind, s.name, s.digest"
    " FROM resources s LEFT JOIN runs r ON r.uid = s.uid AND s.kind = 'run'"
    f" WHERE {_UNCHANGED} ORDER BY s.kind, s.name"
)
# A run without a row of its own has a state that is null, and so has what is said of it above.
_CHANGED = f"{_SELECT} WHERE NOT coalesce({_UNCHANGED}, FALSE) ORDER BY s.kind, s.name"
_NAMED = f"{_SELECT} WHERE s.kind = ? AND s.name = ?"
_ALL = f"{_SELECT} ORDER BY s.kind, s.name"

# Up to so many differing rows are asked for one by one; each takes as long as reading ten others.
_NAMED_MAX = 500


def read_live(
    connection: Statements,
    known: Mapping[ResourceKey, str] | None = None,
    read_again: Callable[[int], Mapping[ResourceKey, LiveResource]] | None = None,
) -> Live:
    """
    Read everything that a plan compares with.

    Args:
        connection: In a transaction, or the parts would be of several states.
        known: Digests that are declared: rows that have them are read no further.
        read_again: Reads all rows in the state with this serial, for whoever wants more of those.
    """
    environment_uid, ledger_id, epoch, status, note, serial, rules, fence = connection.execute(
        "SELECT environment_uid, ledger_id, epoch, status, note, serial, rules, fence FROM meta"
    ).fetchone()
    instances = read_instances(connection)
    lineage = read_lineage(connection)
    released = _released_hosts(connection)
    resources: Mapping[ResourceKey, LiveResource]
    if known is None or read_again is None:
        resources = _resources(connection)
    else:
        resources = _compared(connection, known, partial(read_again, serial))
    return Live(
        environment_uid=environment_uid,
        ledger_id=ledger_id,
        epoch=epoch,
        status=LedgerStatus(status),
        serial=serial,
        resources=resources,
        instances=instances,
        rules=Rules.of(json.loads(rules)) if rules else None,
        fence=fence,
        notes=_notes(note, instances),
        overrides=read_overrides(connection),
        released_hosts=frozenset(released),
        released_host_names=frozenset(released.values()),
        left=read_left(connection),
        retained_disks=read_retained_disks(connection),
        exchanging=read_rollouts(connection, lambda: instances),
        work=_work(connection),
        outdated=lineage.outdated,
        dependents=lineage.dependents,
        recorded_drift=read_drift(connection),
        tried_offers=_tried_offers(connection),
    )


def read_rows(connection: Statements, serial: int) -> dict[ResourceKey, LiveResource]:
    """
    Read all rows of resources, in the state that `serial` names.

    Raises:
        RowsOutdated: It is another one by now.
    """
    (now,) = connection.execute("SELECT serial FROM meta").fetchone()
    if now != serial:
        raise RowsOutdated
    return _resources(connection)


def _tried_offers(connection: Statements) -> dict[str, list[TriedOffer]]:
    found: dict[str, list[TriedOffer]] = {}
    for fleet, terms, at_ms, why in connection.execute(
        "SELECT fleet, terms, refused_at_ms, problem FROM offers ORDER BY fleet, position"
    ):
        found.setdefault(fleet, []).append(TriedOffer(fleet, json.loads(terms), at_ms, why))
    return found


def _compared(
    connection: Statements,
    known: Mapping[ResourceKey, str],
    read_all: Callable[[], Mapping[ResourceKey, LiveResource]],
) -> Rows:
    """Rows that are as they are declared by their digests, and the others whole."""
    digests = {
        (kind, name): digest for kind, name, digest in connection.execute(_UNCHANGED_DIGESTS)
    }
    unchanged = {key: digest for key, digest in known.items() if digests.get(key) == digest}
    if len(digests) - len(unchanged) > _NAMED_MAX:
        rows = _resources(connection)
        return Rows(
            unchanged, {key: row for key, row in rows.items() if key not in unchanged}, read_all
        )
    facts = _run_facts(connection)
    changed = _made(connection.execute(_CHANGED), *facts)
    for key in digests.keys() - unchanged.keys() if len(digests) > len(unchanged) else ():
        changed.update(_made(connection.execute(_NAMED, key), *facts))
    return Rows(unchanged, dict(sorted(changed.items())), read_all)


def _resources(connection: Statements) -> dict[ResourceKey, LiveResource]:
    return _made(connection.execute(_ALL), *_run_facts(connection))


def _run_facts(
    connection: Statements,
) -> tuple[dict[str, int], dict[str, EarlierRun], dict[str, str]]:
    """What `_made` adds to rows, each by the uid of a run."""
    return _gpus(connection), _earlier(connection), read_abort_reasons(connection)


def _gpus(connection: Statements) -> dict[str, int]:
    """How many GPUs each run holds, by its uid."""
    return dict(
        connection.execute(
            "SELECT run_uid, CAST(sum(gpus_count) AS BIGINT) FROM allocations"
            " WHERE gpus_count > 0 GROUP BY run_uid"
        )
    )


def _earlier(connection: Statements) -> dict[str, EarlierRun]:
    """Read the runs that are not over although another run has their name, by the uid of that one."""
    rows = connection.execute(
        "SELECT s.uid, e.uid, e.document, e.stop_requested FROM runs e"
        " JOIN resources s ON s.kind = 'run' AND s.name = e.name"
        # Of several the last one counts: what has begun, before what has only waited for it.
        " WHERE e.final = 0 AND s.uid <> e.uid"
        # One that is to end and has nothing at work, such as one that was withdrawn, never will.
        " AND (e.stop_requested = '' OR EXISTS (SELECT 1 FROM jobs j WHERE j.run_uid = e.uid"
        " AND j.state NOT IN ('waiting', 'finished')))"
        " ORDER BY CASE WHEN e.state IN ('pending', 'submitted') THEN 0 ELSE 1 END, e.number"
    )
    return {
        uid: EarlierRun(earlier, document, asked != "") for uid, earlier, document, asked in rows
    }


def _made(
    rows: Iterable[Sequence[Any]],
    gpus: Mapping[str, int],
    earlier: Mapping[str, EarlierRun],
    aborted: Mapping[str, str],
) -> dict[ResourceKey, LiveResource]:
    resources = {}
    for row in rows:
        (kind, name, uid, generation, digest, execution, own, document, type_, state, archived,
         protected, parent, element, operation, run_state, attempt, cause, message, started,
         finished, stale, rerun_mark, executed, outputs) = row  # fmt: skip
        run = None
        if run_state is not None:
            run = LiveRun(
                RUN_STATES[run_state], attempt, cause, aborted.get(uid, message), started, finished,
                gpus.get(uid, 0), _OUTDATED[stale], rerun_mark, earlier.get(uid), executed,
            )  # fmt: skip
        key = ResourceKey(kind, name)
        # By position: ten thousand of them are read for a plan in which nothing has changed.
        resources[key] = LiveResource(
            key, uid, generation, digest, execution, own, document, type_, state,
            bool(archived), bool(protected), parent, element, operation, run, outputs,
        )  # fmt: skip
    return resources


def _work(connection: Statements) -> tuple[Work, ...]:
    rows = connection.execute(
        "SELECT r.name, i.fleet, i.name, count(*), CAST(sum(a.gpus_count) AS BIGINT),"
        " min(t.started_at_ms),"
        " CAST(sum(CASE WHEN i.drained <> '' THEN 1 ELSE 0 END) AS BIGINT)"
        " FROM allocations a JOIN runs r ON r.uid = a.run_uid"
        " JOIN instances i ON i.uid = a.instance_uid"
        " JOIN attempts t ON t.run_uid = r.uid AND t.number = r.attempt"
        " GROUP BY r.name, i.fleet, i.name ORDER BY r.name, i.fleet, i.name"
    )
    found: list[Work] = []
    for run, fleet, host, jobs, gpus, started, leaving in rows:
        last = found[-1] if found else None
        if last is None or (last.run, last.fleet) != (run, fleet):
            found.append(Work(run, fleet, jobs, gpus, started, leaving, (host,)))
            continue
        begun = [one for one in (last.started_at_ms, started) if one is not None]
        found[-1] = Work(
            run,
            fleet,
            last.jobs + jobs,
            last.gpus + gpus,
            min(begun, default=None),
            last.leaving + leaving,
            (*last.hosts, host),
        )
    return tuple(found)


def _released_hosts(connection: Statements) -> dict[str, str]:
    """Names of hosts that are up and belong to no fleet, by uid."""
    return dict(
        connection.execute(
            "SELECT uid, name FROM instances WHERE state = 'terminated' AND fleet = ''"
        )
    )


def _notes(note: str, instances: Iterable[Instance]) -> tuple[str, ...]:
    silent = (
        f"host {one.name} is unreachable{f': {one.message}' if one.message else ''}"
        for one in instances
        if one.state.value == "unreachable"
    )
    return (note, *silent) if note else tuple(silent)

"""
Counts the runs, hosts and open work of a ledger, and names the first that need attention.

SQL counts, so that the answer takes as long for ten thousand runs as for ten. Only documents that
mention `stopped` are parsed: whether a run is to stand still is declared in its document alone.
"""

# ruff: noqa: S608 -- statements are put together from constants of this module; values are bound.

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fleetform.model.apply import ApplyRecord
from fleetform.model.ledger import LedgerStatus
from fleetform.model.offers import GIVEN_UP, REFUSED_SINCE
from fleetform.model.overview import OpenApply, Overview, TroubledHost, TroubledRun, UncreatedHost
from fleetform.model.rollout import EXCHANGED_TEXTS
from fleetform.model.run_state import NO_EVIDENCE, RunState
from fleetform.store.cost import read_hourly_costs
from fleetform.store.lineage import read_abort_reasons, read_outdated
from fleetform.store.observations import read_drift
from fleetform.store.overrides import read_overrides
from fleetform.store.rollouts import read_rollouts
from fleetform.store.run_state import RUN_STATES

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
    from fleetform.store.statements import Statements

__all__ = ["NAMES_MAX", "read_overview"]

NAMES_MAX = 5
"""Names of one kind that fit on a screen with the rest; `fleetform ps --state` lists all."""

_TROUBLE = (RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.UNKNOWN)
"""In the order in which they are named."""

# A run without evidence needs a person's decision, whatever else its row says.
_STATE = f"CASE WHEN cause = '{NO_EVIDENCE}' THEN 'unknown' ELSE state END"
_STATES = f"SELECT {_STATE}, count(*) FROM runs WHERE listed = 1 GROUP BY 1"
_OPEN = f"SELECT count(*) FROM runs WHERE final = 0 AND cause <> '{NO_EVIDENCE}'"
_ENDING = f"SELECT name FROM runs WHERE listed = 0 AND final = 0 AND cause <> '{NO_EVIDENCE}' ORDER BY name"
_TROUBLED = (
    f"SELECT name, message, uid FROM runs WHERE listed = 1 AND {_STATE} = ? ORDER BY name LIMIT ?"
)
# What is declared now is in the resource: the run's own document is what was executed. Stored JSON has
# no blanks; a variable named `state` may match too, so that the document decides.
_MAYBE_STILL = (
    "SELECT r.name, r.state, r.cause, s.document FROM resources s JOIN runs r ON r.uid = s.uid"
    " WHERE s.kind = 'run' AND s.document LIKE '%\"state\":\"stopped\"%' AND r.listed = 1"
    " AND (r.final = 0 OR r.state IN ('failed', 'unschedulable', 'aborted'))"
)
# Its document or a value that it inherits has changed since, or its host no longer knows what it executed.
_STALE = "SELECT name FROM runs WHERE listed = 1 AND final = 1 AND stale > 0"
_QUARANTINE = (
    "(SELECT o.reason FROM overrides o WHERE o.kind = 'quarantine' AND o.lifted_at_ms IS NULL"
    " AND o.target = 'host/' || i.name ORDER BY o.number LIMIT 1)"
)
_IS_QUARANTINED = f"state IN ('ready', 'suspect') AND {_QUARANTINE} IS NOT NULL"
_COMES_QUARANTINED = f"state IN ('provisioning', 'recovering') AND {_QUARANTINE} IS NOT NULL"
# As in `views.fleets`. Stored JSON has no blanks.
_IS_REFUSED = f"i.state = 'provisioning' AND i.endpoint LIKE '%\"{REFUSED_SINCE}\":%'"
_IS_GIVEN_UP = f"{_IS_REFUSED} AND i.endpoint LIKE '%\"{GIVEN_UP}\":true%'"
_IS_UNCREATED = (
    "i.state = 'provisioning' AND i.provider NOT IN ('local', 'ssh') AND i.install_id = ''"
    f" AND i.endpoint NOT LIKE '%\"id\":%' AND NOT ({_IS_REFUSED})"
)
_IS_FAILED = f"{_IS_UNCREATED} AND i.message <> ''"
_UNCREATED = (
    f"SELECT uid, name, CASE WHEN {_IS_FAILED} THEN 'not created' ELSE state END FROM instances i"
    f" WHERE {_IS_UNCREATED} ORDER BY name"
)
_NOT_CREATED = (
    f"WHEN {_IS_GIVEN_UP} THEN 'refused' WHEN {_IS_REFUSED} THEN 'waiting for capacity'"
    f" WHEN {_IS_FAILED} THEN 'not created'"
)
_IS_GONE = "ended_at_ms IS NOT NULL AND state NOT IN ('terminating', 'terminated')"
_HOSTS = (
    f"SELECT CASE WHEN {_IS_GONE} THEN 'gone' WHEN {_IS_QUARANTINED} THEN 'quarantined'"
    f" {_NOT_CREATED} WHEN state <> 'ready' OR drained = '' THEN state"
    " WHEN EXISTS (SELECT 1 FROM allocations a WHERE a.instance_uid = i.uid) THEN 'draining'"
    " ELSE 'drained' END, count(*), min(seen_at_ms)"
    " FROM instances i WHERE state <> 'terminated' GROUP BY 1"
)
_TROUBLED_HOSTS = (
    f"SELECT name, CASE WHEN {_IS_GONE} THEN 'gone' WHEN {_IS_QUARANTINED} THEN 'quarantined'"
    f" {_NOT_CREATED} WHEN {_COMES_QUARANTINED} THEN 'quarantined and ' || state"
    " WHEN state = 'terminating' AND provider = 'ssh' THEN 'leaving and unreachable'"
    " WHEN state = 'terminating' THEN 'leaving and not released' ELSE state END,"
    f" CASE WHEN {_IS_QUARANTINED} OR {_COMES_QUARANTINED} THEN {_QUARANTINE} ELSE message END,"
    # A quarantined host that answers has a connection, whatever the ledger last recorded of it.
    f" CASE WHEN {_IS_QUARANTINED} THEN NULL ELSE seen_at_ms END FROM instances i"
    f" WHERE state IN ('recovering', 'unreachable', 'suspect') OR {_IS_QUARANTINED} OR {_COMES_QUARANTINED} OR {_IS_GONE}"
    f" OR {_IS_REFUSED} OR {_IS_FAILED}"
    " OR state = 'terminating' AND provider <> 'local'"
    " AND message NOT IN ('', ?, ?, ?, ?)"
    " ORDER BY name LIMIT ?"
)
"""A host that leaves has a message where it cannot be released, or where it makes room for another."""
_WITH_DEVICES = "SELECT uid FROM instances WHERE state = 'ready' AND declared LIKE '%\"devices\"%'"
_IDLE = "SELECT count(*) FROM instances WHERE idle_since_ms IS NOT NULL AND state <> 'terminated'"
# One of a fleet whose step has failed waits for the next plan, which is about that fleet. An instance of a cloud does not: it costs
# money while it boots, and one that was not created for now is created once its cloud can.
_JOINING = (
    "SELECT count(*) FROM instances i JOIN resources r ON r.kind = 'fleet' AND r.name = i.fleet"
    " AND (r.digest <> '' OR i.provider <> 'ssh') WHERE i.provider <> 'local' AND i.install_id = ''"
    f" AND i.state NOT IN ('terminating', 'terminated') AND NOT ({_IS_GIVEN_UP})"
)
_APPLIES = (
    "SELECT a.uid, a.plan_digest, a.state, a.who, a.tree_commit, a.started_at_ms,"
    " a.finished_at_ms, a.summary, (SELECT count(*) FROM operations o WHERE o.apply_uid = a.uid"
    " AND o.state IN ('planned', 'intended')) FROM applies a WHERE a.state = 'running'"
    " ORDER BY a.number"
)


def read_overview(connection: Statements) -> Overview:
    """Read it in one state of the ledger: `connection` is in a transaction."""
    status, note = connection.execute("SELECT status, note FROM meta").fetchone()
    states: Counter[RunState] = Counter()
    for state, count in connection.execute(_STATES):
        # Two words of an older ledger may be one state.
        states[RUN_STATES[state]] += count
    still = dict(_standing_still(connection))
    troubled = {state: states[state] - list(still.values()).count(state) for state in _TROUBLE}
    (open_count,) = connection.execute(_OPEN).fetchone()
    ending = tuple(name for (name,) in connection.execute(_ENDING))
    hosts, heard_at_ms = _hosts(connection)
    (joining,) = connection.execute(_JOINING).fetchone()
    (idle,) = connection.execute(_IDLE).fetchone()
    return Overview(
        status=LedgerStatus(status),
        note=note,
        runs={state: states[state] for state in RunState if state in states},
        troubled_states={state: count for state, count in troubled.items() if count},
        troubled=tuple(_troubled(connection, still)),
        outdated_count=len(_outdated(connection)),
        ending_count=len(ending),
        ending=ending[:NAMES_MAX],
        work_count=open_count,
        hosts=hosts,
        troubled_hosts=_troubled_hosts(connection),
        uncreated=tuple(UncreatedHost(*row) for row in connection.execute(_UNCREATED)),
        leaving_count=hosts.get("terminating", 0),
        joining_count=joining,
        idle_count=idle,
        heard_at_ms=heard_at_ms,
        applies=tuple(
            OpenApply(ApplyRecord(*row[:-1]), row[-1]) for row in connection.execute(_APPLIES)
        ),
        overrides=read_overrides(connection),
        drift=read_drift(connection),
        rollouts=read_rollouts(connection, partial(_all_hosts, connection)),
        hourly=read_hourly_costs(connection),
    )


def _all_hosts(connection: Statements) -> Sequence[Instance]:
    # Here: most commands read no whole instances.
    from fleetform.store.instances import read_instances

    return read_instances(connection)


def _standing_still(connection: Statements) -> Iterator[tuple[str, RunState]]:
    """Name the runs whose document says `state: stopped`, of those that ended badly or are unknown."""
    for name, state, cause, document in connection.execute(_MAYBE_STILL):
        if json.loads(document).get("state") == "stopped":
            yield name, RunState.UNKNOWN if cause == NO_EVIDENCE else RUN_STATES[state]


def _outdated(connection: Statements) -> set[str]:
    """Name the runs that each plan lists under outdated results."""
    return {*read_outdated(connection), *(name for (name,) in connection.execute(_STALE))}


def _troubled_hosts(connection: Statements) -> tuple[TroubledHost, ...]:
    rows = connection.execute(_TROUBLED_HOSTS, (*EXCHANGED_TEXTS, NAMES_MAX))
    found = [TroubledHost(*row) for row in rows]
    named = {one.name for one in found}
    uids = [uid for (uid,) in connection.execute(_WITH_DEVICES)]
    if not uids:
        return tuple(found)
    # Here: few environments declare devices, and most commands read no whole instances.
    from fleetform.model.instance import missing_devices_text
    from fleetform.store.instances import read_instances

    for one in read_instances(connection, uids):
        missing = missing_devices_text(one.declared, one.gpus)
        if missing and one.name not in named:
            found.append(TroubledHost(one.name, "without a declared GPU", missing, None))
    return tuple(found[:NAMES_MAX])


def _troubled(connection: Statements, still: dict[str, RunState]) -> Iterator[TroubledRun]:
    left = NAMES_MAX
    reasons = read_abort_reasons(connection)
    for state in _TROUBLE:
        # As many more as may have to be passed over.
        more = sum(one is state for one in still.values())
        rows = connection.execute(_TROUBLED, (state.value, left + more)).fetchall()
        for name, message, uid in rows:
            if left and name not in still:
                left -= 1
                yield TroubledRun(name, state, reasons.get(uid, message))


def _hosts(connection: Statements) -> tuple[dict[str, int], int | None]:
    """Count the hosts by state, and say when the one that was silent longest was heard last."""
    rows = sorted(connection.execute(_HOSTS).fetchall())
    heard = [seen for _state, _count, seen in rows if seen is not None]
    return {state: count for state, count, _seen in rows}, min(heard, default=None)

"""
Runs at work of which nothing is known now, because their host does not answer.

The ledger has them in progress, and a controller takes them up again when the host answers. Until then a
plan must not say that all is well.
"""

from __future__ import annotations

from typing import Any

from fleetform.model.instance import InstanceState
from fleetform.model.live import Live
from fleetform.model.plan import Plan
from fleetform.model.rows import restless_rows
from fleetform.model.run_state import RunState

__all__ = ["unknown_runs"]


def unknown_runs(plan: Plan, live: Live) -> list[dict[str, Any]]:
    """Name them by key, each with those of its hosts that do not answer."""
    silent = _silent_hosts(live)
    hosts: dict[str, set[str]] = {}
    for work in live.work:
        hosts.setdefault(work.run, set()).update(silent.intersection(work.hosts))
    rows = restless_rows(live.resources)
    return [
        {"name": key.name, "hosts": sorted(hosts.get(key.name, ()))}
        for key in plan.progressing
        if key.kind == "run"
        and (row := rows.get(key)) is not None
        and row.run is not None
        and (row.run.state is RunState.UNKNOWN or hosts.get(key.name))
    ]


def _silent_hosts(live: Live) -> set[str]:
    """By the ledger, and by this look at the actual state: an earlier look may be out of date."""
    silent = {one.name for one in live.instances if one.state is InstanceState.UNREACHABLE}
    return silent | {one.part for one in live.drift if one.field in {"agent", "host"} and one.part}

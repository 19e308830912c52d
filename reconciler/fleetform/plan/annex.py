"""
What people are told about a plan that is no part of what was decided.

Times, ages and readings change from one minute to the next; outside the digest they do not
make two equal plans differ.
"""

from __future__ import annotations

from typing import Any

from fleetform.plan.proposal import Sheet


def annex_of(sheet: Sheet, now_ms: int) -> dict[str, Any]:
    """
    Depth, time, what was read, and how long the work at stake has been going.

    `drift` has what the world has become beside the ledger, where it was asked.

    `at_stake_ms` maps an address to milliseconds since its attempt started, `gpus` to the GPUs
    it holds; both only for running work that the plan, or something held, would end.
    """
    at_stake_ms: dict[str, int] = {}
    gpus: dict[str, int] = {}
    for change in (*sheet.changes.values(), *(held.change for held in sheet.held.values())):
        row = sheet.live.resources.get(sheet.row_key(change))
        if row is None or row.run is None or row.run.finished_at_ms is not None:
            continue
        if change.destructive and row.run.started_at_ms is not None:
            at_stake_ms[str(row.key)] = max(0, now_ms - row.run.started_at_ms)
            gpus[str(row.key)] = row.run.gpus
    return {
        "depth": "ledger" if sheet.live.observed_at_ms is None else "refresh",
        "observed_at_ms": sheet.live.observed_at_ms,
        "drift": [
            {
                "resource": str(one.resource),
                "path": one.path,
                "class": one.drift_class.value,
                "before": one.expected,
                "after": one.seen,
                "right_at_ms": one.right_at_ms,
                "changed_at_ms": one.changed_at_ms,
                "by": one.by,
            }
            for one in sheet.live.drift
        ],
        "planned_at_ms": now_ms,
        "serial": sheet.live.serial,
        "ledger_status": sheet.live.status.value,
        "resources": len(sheet.wanted),
        "unchanged": _unchanged(sheet),
        "at_stake_ms": dict(sorted(at_stake_ms.items())),
        "gpus": dict(sorted(gpus.items())),
        "notes": list(sheet.live.notes),
    }


def _unchanged(sheet: Sheet) -> int:
    """Declared resources that nothing happens to and nothing holds."""
    touched = sheet.changes.keys() | sheet.held.keys()
    return len(sheet.wanted) - len(sheet.wanted.keys() & touched)

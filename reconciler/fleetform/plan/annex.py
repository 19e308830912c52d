"""
What people are told about a plan that is no part of what was decided.

Times, ages and readings change from one minute to the next; outside the digest they do not
make two equal plans differ.
"""

from __future__ import annotations

from typing import Any

from fleetform.model.drift import Drift
from fleetform.model.run_state import Outdated
from fleetform.model.windows import next_spell, spell_at
from fleetform.plan.draft import Sheet
from fleetform.plan.impact import work_at_stake
from fleetform.plan.outdated import outdated_by_plan, stale_results


def annex_of(sheet: Sheet, now_ms: int) -> dict[str, Any]:
    """
    Depth, time, what was read, and how long the work at stake has been going.

    `hosts` says how old it is what the ledger knows of them. `drift` has what this look at the actual
    state found, and what earlier looks found that was not seen healed since, each with `seen_at_ms`.

    `at_stake` has, by address, running work that the plan or something held would end: `ms` that
    the longest of it has been going, `gpu_ms` of all of it, and `since` when that counts: `start`,
    for nobody says yet when a run last wrote a checkpoint.
    """
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
                "seen_at_ms": seen_at_ms,
            }
            for one, seen_at_ms in _drift(sheet)
        ],
        "planned_at_ms": now_ms,
        "hosts": _hosts(sheet),
        "serial": sheet.live.serial,
        "ledger_status": sheet.live.status.value,
        "resources": len(sheet.wanted),
        "unchanged": _unchanged(sheet),
        "at_stake": _at_stake(sheet, now_ms),
        "notes": list(sheet.live.notes),
        "windows": _windows(sheet, now_ms),
        "stale": [
            {
                "name": one.key.name,
                "inherited": one.document is Outdated.INHERITED,
                "inputs": list(one.inputs),
                **({"edited": True} if one.document is Outdated.DOCUMENT else {}),
            }
            for one in stale_results(sheet)
        ],
        "outdates": list(outdated_by_plan(sheet)),
    }


def _drift(sheet: Sheet) -> list[tuple[Drift, int | None]]:
    now = {(one.resource, one.path): one for one in sheet.live.drift}
    earlier = [one for one in sheet.live.recorded_drift if one.place not in now]
    return [
        *((one, sheet.live.observed_at_ms) for one in now.values()),
        *((one.drift, one.seen_at_ms) for one in earlier),
    ]


def _windows(sheet: Sheet, now_ms: int) -> list[dict[str, Any]]:
    """The freeze windows that are open, and when each of the others opens next."""
    spells = [
        spell
        for window in sheet.rules.freeze
        if (spell := spell_at(window, now_ms) or next_spell(window, now_ms))
    ]
    return [
        {
            "reason": one.window.reason,
            "only": one.window.only,
            "open": one.begin_ms <= now_ms,
            "begin_ms": one.begin_ms,
            "end_ms": one.end_ms,
        }
        for one in sorted(spells, key=lambda one: (one.begin_ms, one.window.reason))
    ]


def _hosts(sheet: Sheet) -> dict[str, Any]:
    """How many hosts there are, and since when nothing is written of the one heard longest ago."""
    seen = [one.seen_at_ms for one in sheet.live.instances if one.seen_at_ms is not None]
    return {
        "count": len(sheet.live.instances),
        "never_seen": len(sheet.live.instances) - len(seen),
        "seen_at_ms": min(seen, default=None),
    }


def _at_stake(sheet: Sheet, now_ms: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    held = (one.change for one in sheet.held.values())
    for change in (*sheet.changes.values(), *held):
        if change.stake is None:
            continue
        spans = [
            (max(0, now_ms - one.started_at_ms), one.gpus)
            for one in work_at_stake(sheet, change)
            if one.started_at_ms is not None
        ]
        if spans:
            found[str(change.key)] = {
                "ms": max(span for span, _ in spans),
                "gpu_ms": sum(span * gpus for span, gpus in spans),
                "since": "start",
            }
    return dict(sorted(found.items()))


def _unchanged(sheet: Sheet) -> int:
    """Declared resources that nothing happens to and nothing holds."""
    touched = sheet.changes.keys() | sheet.held.keys()
    return len(sheet.wanted) - len(sheet.wanted.keys() & touched)

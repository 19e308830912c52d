"""
Adds to a finished plan what people must know of runs that it does not change.

Each note is a view of the plan and of what it was made from, so it is in the annex, outside the digest.
"""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.live import Live
from fleetform.model.plan import Plan
from fleetform.plan.still_aborted import still_aborted
from fleetform.plan.unknown import unknown_runs

__all__ = ["with_notes"]


def with_notes(plan: Plan, live: Live) -> Plan:
    """
    Add to the annex what there is to note; most plans stay as they are.

    `still_aborted` names the aborted runs that had waited for what this plan runs again. `unknown` has
    the runs at work of which nothing is known, each with its `hosts` that do not answer.
    """
    notes = {"still_aborted": list(still_aborted(plan, live)), "unknown": unknown_runs(plan, live)}
    found = {name: note for name, note in notes.items() if note}
    return replace(plan, annex={**plan.annex, **found}) if found else plan

"""
The sentences that say why a predicate of a plan is no longer true.

The planner says it before a person agrees, and the ledger says it when it refuses a plan: both use
these, so that one cause has one sentence. Each follows the address of its resource.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "BEING_STARTED",
    "CHANGED",
    "GONE",
    "HAS_STARTED",
    "NOT_RESTORABLE",
    "OTHER_RULES",
    "REPLACED",
    "mounted_by",
    "present",
    "running_there",
]

BEING_STARTED = "is being started under its current names"
CHANGED = "was changed since the plan"
GONE = "no longer exists"
HAS_STARTED = "has started"
NOT_RESTORABLE = "cannot be restored: another volume has its data now"
OTHER_RULES = "has other rules now, and they judge the plan"
REPLACED = "was replaced by another one of the same name"


def present(*, archived: bool) -> str:
    """What is there where a plan claims that nothing is."""
    return "has a result now" if archived else "exists now"


def running_there(runs: Sequence[str]) -> str:
    """A fleet that the plan removes has runs that the plan does not name."""
    return f"has {_first(runs)} running on it now"


def mounted_by(runs: Sequence[str]) -> str:
    """A volume that the plan removes is mounted by runs that the plan does not name."""
    return f"is mounted by the running {_first(runs)} now"


def _first(runs: Sequence[str]) -> str:
    more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
    return f"run/{runs[0]}{more}"

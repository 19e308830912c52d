"""How far the rollout of a fleet is, as a sentence."""

from __future__ import annotations

from fleetform.model.figures import counted
from fleetform.model.rollout_status import RolloutStatus

__all__ = ["rollout_text"]


def rollout_text(fleet: str, found: RolloutStatus) -> str:
    """Write `rollout of fleet/gpus: 3 of 8 hosts have the new template; 4 wait (2 busy), 1 is being replaced`."""
    verb = "has" if found.hosts == 1 else "have"
    hosts = counted(found.hosts, "host")
    said = f"rollout of fleet/{fleet}: {found.updated} of {hosts} {verb} the new template"
    rest = []
    if found.waiting:
        busy = f" ({found.busy} busy)" if found.busy else ""
        rest.append(f"{found.waiting} wait{'s' if found.waiting == 1 else ''}{busy}")
    if replaced := found.hosts - found.updated - found.waiting:
        rest.append(f"{replaced} {'is' if replaced == 1 else 'are'} being replaced")
    return f"{said}; {', '.join(rest)}" if rest else said

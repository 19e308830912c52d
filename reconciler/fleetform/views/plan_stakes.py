"""What running work a change would end, in words: whose, how much, for how long."""

from __future__ import annotations

from typing import Any

from fleetform.model import figures
from fleetform.model.plan import Change, Plan, Stake
from fleetform.spec.names import natural_order
from fleetform.views.lines import printable
from fleetform.views.plan_groups import Group

__all__ = ["group_stake_text", "stake_text"]

RUNS_MAX = 3


def stake_text(plan: Plan, change: Change) -> str:
    """
    Write `2 hosts and all jobs on them: train on 8 GPUs, 2h13m so far, 17.7 GPU-hours`.

    Empty for a change that would end nothing. Times come from the annex.
    """
    since = plan.annex.get("at_stake")
    if not since and not change.at_stake and change.stake is None:
        return ""
    parts = [change.at_stake] if change.at_stake else []
    # Of a run, what is at stake is its own work, and said where it is destructive.
    if change.stake is not None and (change.key.kind != "run" or not parts):
        parts.append(f"{_whose(change, change.stake)}{_on(change.stake.gpus)}")
    return ": ".join(parts) + _so_far((since or {}).get(str(change.key)))


def group_stake_text(plan: Plan, group: Group) -> str:
    """Write the stake of a block; of many elements their number and the first of them."""
    change = group.first
    text = stake_text(plan, change)
    if text and group.is_many:
        return f"{len(group.changes)} times, such as {change.at_stake or text}"
    return text


def _whose(change: Change, stake: Stake) -> str:
    if change.key.kind == "run":
        return "its work"
    runs = [printable(name) for name in sorted(stake.runs, key=natural_order)]
    more = f" and {len(runs) - RUNS_MAX} more" if len(runs) > RUNS_MAX else ""
    return f"{', '.join(runs[:RUNS_MAX])}{more}"


def _on(gpus: int) -> str:
    return f" on {figures.counted(gpus, 'GPU')}" if gpus else ""


def _so_far(known: dict[str, Any] | None) -> str:
    if not known:
        return ""
    since = "since the last checkpoint" if known.get("since") == "checkpoint" else "so far"
    hours = figures.decimal(known["gpu_ms"], 3_600_000) if known.get("gpu_ms") else ""
    cost = f", {hours} GPU-hours" if hours else ""
    return f", {figures.span(known['ms'])} {since}{cost}"

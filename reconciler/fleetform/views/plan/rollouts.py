"""Which hosts of a fleet a plan replaces, by which rules, and how far rollouts of earlier plans are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.figures import counted, first_of
from fleetform.model.plan import Change, Plan
from fleetform.model.rollout import MAX_UNAVAILABLE
from fleetform.model.rollout_status import RolloutStatus
from fleetform.views.lines import printable
from fleetform.views.plan.groups import NAMES_MAX
from fleetform.views.plan.offers import hosts_replaced, replacement_text
from fleetform.views.rollouts import rollout_text

__all__ = ["hosts_replaced_text", "rollout_texts", "rollouts"]


def rollouts(plan: Plan) -> Mapping[str, RolloutStatus]:
    """Return, by fleet, how far rollouts are that were under way when the plan was made."""
    found = plan.annex.get("rollouts", {})
    return {fleet: RolloutStatus(**one) for fleet, one in found.items()}


def rollout_texts(plan: Plan) -> list[str]:
    """Say of each rollout how far it is."""
    return [printable(rollout_text(fleet, one)) for fleet, one in rollouts(plan).items()]


def hosts_replaced_text(plan: Plan, change: Change) -> str:
    """
    Write `1 host: gpus-1 (us-east-1 is no longer in `regions`); g5.xlarge in us-east-1, $1.01/h → …; drain, 1 at a time: …`.

    Empty for a change that replaces no host of a cloud.
    """
    replaced = hosts_replaced(change)
    if not replaced:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name, why in replaced.items():
        by_reason.setdefault(why, []).append(printable(name))
    hosts = "; ".join(
        f"{first_of(names, NAMES_MAX)} ({printable(why)})" for why, names in by_reason.items()
    )
    by = replacement_text(plan, change)
    return f"{counted(len(replaced), 'host')}: {hosts}; {f'{by}; ' if by else ''}{_rules(change)}"


_RULES = {
    "drain": "each once its jobs have ended",
    "surge": "each once a new host is there and its jobs have ended",
    "recreate": "their jobs end",
}
"""What `update.strategy` of a fleet means."""


def update_of(change: Change) -> Mapping[str, Any]:
    """Return what a fleet declares of its rollouts; empty: it takes the defaults."""
    documents = (step.arguments.get("document", {}) for step in change.steps)
    found: Mapping[str, Any] = next((one["update"] for one in documents if "update" in one), {})
    return found


def _rules(change: Change) -> str:
    """Write `drain, 1 at a time: each once its jobs have ended`."""
    update = update_of(change)
    strategy = update.get("strategy", "drain")
    return f"{strategy}, {update.get('max_unavailable', MAX_UNAVAILABLE)} at a time: {_RULES[strategy]}"

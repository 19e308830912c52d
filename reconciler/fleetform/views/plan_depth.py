"""With what a plan compares the tree, and how old that is."""

from __future__ import annotations

from fleetform.model import figures
from fleetform.model.plan import Plan

__all__ = ["depth_text"]

FRESH_MS = 60_000
"""
Up to this age nobody is told.

Whoever manages the environment asks its hosts every few seconds; what is a minute old was heard by
an apply that has just ended.
"""


def depth_text(plan: Plan) -> str:
    """Write `compared with the ledger, which last heard of its hosts 2h07m ago`."""
    annex = plan.annex
    if annex.get("depth") == "refresh":
        age = _age(plan, annex.get("observed_at_ms"))
        return "compared with the actual state" + (f" of {figures.span(age)} ago" if age else "")
    text = "compared with the ledger"
    if annex.get("watched_by"):
        return text
    hosts = annex.get("hosts", {})
    age = _age(plan, hosts.get("seen_at_ms"))
    return f"{text}, which last heard of its hosts {figures.span(age)} ago" if age else text


def _age(plan: Plan, seen_at_ms: int | None) -> int:
    """Milliseconds, or 0 for what is fresh or unknown."""
    planned = plan.annex.get("planned_at_ms")
    if seen_at_ms is None or planned is None:
        return 0
    age: int = planned - seen_at_ms
    return age if age >= FRESH_MS else 0

"""Moments and spans as people read them; wall time, for display only."""

from __future__ import annotations

from fleetform.model import figures
from fleetform.model.figures import moment

__all__ = ["age", "moment"]


def age(since_ms: int | None, now_ms: int) -> str:
    """Write how long ago something was; empty where it has not been."""
    return "" if since_ms is None else figures.span(max(0, now_ms - since_ms))

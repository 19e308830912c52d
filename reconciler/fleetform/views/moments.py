"""Moments and spans as people read them; wall time, for display only."""

from __future__ import annotations

from datetime import UTC, datetime

from fleetform.model import figures


def moment(at_ms: int) -> str:
    """Write Unix milliseconds as `2026-11-21T10:26:30Z`."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(since_ms: int | None, now_ms: int) -> str:
    """Write how long ago something was; empty where it has not been."""
    return "" if since_ms is None else figures.span(max(0, now_ms - since_ms))

"""Changes of the states of runs between two looks at them: the lines of `ps --watch` in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleetform.views.moments import moment

__all__ = ["RunChange", "change_text", "state_changes"]


@dataclass(frozen=True, slots=True)
class RunChange:
    """
    One run whose state differs from that of the look before.

    `at` is `at_ms` as text, UTC: when the change was seen. `previous_state` is null for a new run.
    """

    at: str
    at_ms: int
    name: str
    previous_state: str | None
    state: str


def state_changes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    states: Iterable[str] = (),
    now_ms: int,
) -> tuple[RunChange, ...]:
    """
    Compare states by name, in the order of `after`.

    Args:
        before: Of the look before.
        after: Of this look.
        states: Keep changes to and from these only; empty: all.
        now_ms: When the change was seen.
    """
    wanted = frozenset(states)
    return tuple(
        RunChange(moment(now_ms), now_ms, name, before.get(name), state)
        for name, state in after.items()
        if before.get(name) != state and (not wanted or wanted & {state, before.get(name)})
    )


def change_text(change: RunChange) -> str:
    """Write `2026-11-22T20:01:02Z arr[3] running → done`."""
    return f"{change.at} {change.name} {change.previous_state or 'new'} → {change.state}"

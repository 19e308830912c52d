"""
The list of runs with each array and sweep folded into one row.

Elements that went wrong keep rows of their own, since they are what people look for: one row for
each state and message, named by an address that `logs`, `why` and `rerun` take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from fleetform.model.figures import counted
from fleetform.model.run_state import RunState
from fleetform.views.element_names import shorten_elements
from fleetform.views.moments import moment
from fleetform.views.runs import RunRow, row_message

FAILURE_ROWS_MAX = 6
"""Rows of one array that name failed elements: more kinds of failure are looked at one by one."""

URGENCY = (
    RunState.RUNNING, RunState.FINISHING, RunState.PREPARING, RunState.PROVISIONING,
    RunState.UNKNOWN, RunState.SUBMITTED, RunState.PENDING,
    RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.STOPPED, RunState.DONE,
)  # fmt: skip
"""The first of these that an element is in is the state of the whole: work, then waiting, then ends."""

WENT_WRONG = (RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.UNKNOWN)

_COUNTED = (*WENT_WRONG, *(state for state in URGENCY if state not in WENT_WRONG))
"""The order of counts: a terminal cuts a message at its end, so failures are at its begin."""


@dataclass(frozen=True, slots=True)
class RunList:
    """
    Rows in the order of names.

    `unlisted` has, for each array whose failed elements are not all named, how many failed.
    """

    rows: tuple[RunRow, ...]
    unlisted: Mapping[str, int]


def list_runs(rows: Iterable[RunRow], *, unfolded: Iterable[str] = ()) -> RunList:
    """
    Fold the elements of each array and sweep, in order of first appearance.

    Args:
        rows: In the order in which they are to be listed.
        unfolded: Arrays and sweeps whose elements keep a row each.
    """
    each = frozenset(unfolded)
    by_name: dict[tuple[str, bool], list[RunRow]] = {}
    for row in rows:
        is_folded = bool(row.parent) and row.parent not in each
        by_name.setdefault((row.parent if is_folded else row.name, row.archived), []).append(row)
    listed: list[RunRow] = []
    unlisted: dict[str, int] = {}
    for (name, _), elements in by_name.items():
        if name != elements[0].parent:
            listed.extend(elements)
            continue
        failures, is_complete = _failures(name, elements)
        listed.append(_folded(name, elements))
        listed.extend(failures)
        if not is_complete:
            unlisted[name] = sum(row.state in WENT_WRONG for row in elements)
    return RunList(tuple(listed), unlisted)


def counts_text(rows: Iterable[RunRow]) -> str:
    """Write the counts: `8 failed, 12 running, 980 done`."""
    return states_text(row.state for row in rows)


def states_text(states: Iterable[str]) -> str:
    """Write the counts of states, in the same order."""
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state.value}" for state in _COUNTED if counts[state])


def _folded(name: str, elements: Sequence[RunRow]) -> RunRow:
    states = {row.state for row in elements}
    state = next(one for one in URGENCY if one in states)
    detail = counts_text(elements)
    if len(states) == 1:
        # The state stands in its own column.
        shared = {row_message(row) for row in elements}
        detail = shared.pop() if len(shared) == 1 else ""
    return _merged(
        elements, name=name, state=state.value, message=_counted_message(elements, detail)
    )


def _counted_message(elements: Sequence[RunRow], detail: str) -> str:
    count = counted(len(elements), "element")
    return f"{count}: {detail}" if detail else count


def _failures(name: str, elements: Sequence[RunRow]) -> tuple[list[RunRow], bool]:
    """Make a row for each state and message of failed elements; tell whether all are named."""
    alike: dict[tuple[str, str], list[RunRow]] = {}
    for row in elements:
        if row.state in WENT_WRONG:
            alike.setdefault((row.state, row_message(row)), []).append(row)
    if len(alike) == 1 and sum(map(len, alike.values())) == len(elements):
        # The row of the whole says it all.
        return [], True
    rows = list(chain.from_iterable(_named(name, group) for group in alike.values()))
    shown = rows[:FAILURE_ROWS_MAX]
    is_complete = len(shown) == len(rows) and all("…" not in row.name for row in shown)
    return shown, is_complete


def _named(name: str, alike: Sequence[RunRow]) -> list[RunRow]:
    """One row where an address selects all of them, else one for each."""
    names = shorten_elements(row.element for row in alike)
    if not names.is_address and "|" in names.text:
        return list(alike)
    if len(alike) == 1:
        return list(alike)
    message = _counted_message(alike, row_message(alike[0]))
    return [_merged(alike, name=f"{name}{names.text}", state=alike[0].state, message=message)]


def _merged(rows: Sequence[RunRow], *, name: str, state: str, message: str) -> RunRow:
    """Make one row that stands for several: where they are, from the first start to the last end."""
    starts = [row.started_at_ms for row in rows if row.started_at_ms is not None]
    ends = [
        (row.started_at_ms + row.duration_ms + (row.pauses_ms or 0), row.silent_since_ms)
        for row in rows
        if row.started_at_ms is not None and row.duration_ms is not None
    ]
    end_ms, silent_since_ms = max(ends, key=lambda one: one[0], default=(None, None))
    return replace(
        rows[0],
        name=name,
        uid="",
        element="",
        state=state,
        attempt=max(row.attempt for row in rows),
        instances=tuple(dict.fromkeys(host for row in rows for host in row.instances)),
        message=message,
        waiting=(),
        stop_requested="",
        submitted_at_ms=min(row.submitted_at_ms for row in rows),
        started_at_ms=min(starts, default=None),
        duration_ms=None if end_ms is None else end_ms - min(starts),
        pauses_ms=None if end_ms is None else 0,
        silent_since_ms=silent_since_ms,
    )


# Changes of the states of runs between two looks at them: the lines of `ps --watch` in a pipe.


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

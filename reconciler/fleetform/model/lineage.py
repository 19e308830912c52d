"""
Which results an attempt started from, and how they differ from the results of now.

An input is a run, or a sweep with all of its elements. What counts is the *set* of its results:
an element that was replaced, added, removed or run again makes another set.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from fleetform.model.run_state import FINAL, RunState

__all__ = ["NO_RESULT", "InputChange", "InputEvent", "ResultId", "has_result", "input_changes"]

ResultId = tuple[str, int]
"""A run's uid and the number of its attempt."""

NO_RESULT: ResultId = ("", 0)
"""Stands for an element that had no result yet."""


class InputEvent(enum.StrEnum):
    """How an input differs from the one that an attempt started from."""

    RERUN = "re-run"
    """It was run again, and its later attempt has a result."""
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    """The results of a large sweep differ; which ones is not recorded."""
    LOST = "lost"
    """A volume that the run had mounted has lost its data since."""
    OUTDATED = "outdated"
    """It has the result that was used, and that result is outdated itself."""


class InputChange(NamedTuple):
    """One input that differs: the name of a run, of an element, or of a sweep."""

    name: str
    event: InputEvent


def has_result(when: str, state: RunState, *, started: bool) -> bool:
    """
    Tell whether a run has reached what a dependency on it waits for.

    Args:
        when: `succeeded`, `failed`, `finished` or `started`, as `depends_on` has it.
        state: Of the run now.
        started: Whether its latest attempt, or an earlier one, has started.
    """
    if when == "started":
        return started
    if when == "finished":
        return state in FINAL
    if when == "succeeded":
        return state is RunState.DONE
    # Whatever kept it from success: a stop or an abort is no success either.
    return state in FINAL and state is not RunState.DONE


def input_changes(
    before: Mapping[str, ResultId], now: Mapping[str, ResultId | None]
) -> list[InputChange]:
    """
    Compare the set of results that an attempt started from with the set of now.

    Args:
        before: By name of the run or element.
        now: The same; None for what has no result at this moment. Empty where the input has left
            the configuration as a whole: then there is nothing newer to start from.
    """
    if not now:
        return []
    found = [
        InputChange(name, InputEvent.ADDED if name not in before else InputEvent.RERUN)
        for name, result in now.items()
        if result is not None and result != before.get(name)
    ]
    found += [InputChange(name, InputEvent.REMOVED) for name in before if name not in now]
    return sorted(found)

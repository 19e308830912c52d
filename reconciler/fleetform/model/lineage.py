"""
Which results an attempt started from, and how they differ from the results of now.

An input is a run, or a sweep with all of its elements. What counts is the *set* of its results:
an element that was replaced, added, removed or run again makes another set.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fleetform.model.run_state import FINAL, RunState

__all__ = [
    "ALL_OF",
    "DEPENDENCY",
    "NO_RESULT",
    "InputChange",
    "InputEvent",
    "ResultId",
    "abort_reason",
    "had_ended",
    "has_result",
    "input_changes",
    "since_met",
]


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


# Why a run was aborted, as it reads later: what had happened, and what is different since.
# A run that was aborted stays so until a person runs it again, while what it waited for may be run
# again and succeed. Its recorded reason is a fact of the past, and is told as one.

DEPENDENCY = "dependency"
"""The cause of a run that was aborted because a dependency could not be met."""

ALL_OF = "all of "
"""Before the name of a sweep or array that is waited for as a whole."""

_HAD = {
    "done": "had succeeded",
    "failed": "had failed",
    "stopped": "had been stopped",
    "aborted": "had been aborted",
    "unschedulable": "was unschedulable",
}

_NAMED_MAX = 3

# What older versions recorded, in the present tense.
_PRESENT = re.compile(
    r"\brequires (?P<wanted>.+? to (?:succeed|fail|finish|start)), and (?P<which>.+?)"
    rf" is (?P<state>{'|'.join(_HAD)})\b"
)


def had_ended(state: str) -> str:
    """Say how a dependency had ended: `had failed`."""
    return _HAD[state]


def abort_reason(recorded: str) -> str:
    """Write what was recorded in the past tense, whichever version recorded it."""
    return _PRESENT.sub(
        lambda found: (
            f"required {found['wanted']}, and {found['which']} {had_ended(found['state'])}"
        ),
        recorded,
    ).replace("no dependency can be met: ", "no dependency could be met: ")


def since_met(met: Sequence[tuple[str, str]], address: str) -> str:
    """
    Say that what an aborted run waited for is fine now, and what runs it.

    Args:
        met: The dependencies that are met now: what each is on, and `when` of it. Empty: they are not.
        address: Of the aborted run, for a command line.
    """
    if not met:
        return ""
    parts = [
        f"{which} {'have' if which.startswith(ALL_OF) else 'has'} {when}" for which, when in met
    ]
    if len(parts) > _NAMED_MAX:
        parts = [f"all {len(parts)} of its dependencies are met"]
    return f"; {' and '.join(parts)} since: `fleetform rerun {address}` runs it"

"""
Why a run was aborted, as it reads later: what had happened, and what is different since.

A run that was aborted stays so until a person runs it again, while what it waited for may be run
again and succeed. Its recorded reason is a fact of the past, and is told as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["ALL_OF", "DEPENDENCY", "abort_reason", "had_ended", "since_met"]

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

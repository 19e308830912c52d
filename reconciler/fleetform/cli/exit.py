"""
Exit codes: one table for every command, because pipelines branch on them.

A usage error is 1 and not click's 2, which here means "there are changes".
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.model.plan import Plan


class Exit(enum.IntEnum):
    """What a finished command says to the script that called it."""

    OK = 0
    """Converged, and every run succeeded."""
    ERROR = 1
    """Something is wrong with the command line, the tree, or the world."""
    CHANGES = 2
    """`plan --detailed-exitcode` only: applying would change something."""
    HELD = 3
    """A change is held back: it needs a permission, or waits for something."""
    RUN_FAILED = 4
    """A run has ended badly and stays so."""
    STALE = 5
    """The plan no longer fits what is there."""
    LOCKED = 6
    """Somebody else is changing this environment."""
    POLICY = 7
    """A policy forbids it."""
    INTERRUPTED = 130
    """Ctrl-C: 128 + SIGINT, as shells count it."""
    BROKEN_PIPE = 141
    """The reader of our output went away: 128 + SIGPIPE."""


def of_plan(plan: Plan, *, detailed: bool = False) -> Exit:
    """
    Say what a plan that nobody carries out means to a script.

    A failed run outranks a held change: the second apply of a pipeline must not turn green
    because nothing is left to do. With `detailed`, changes outrank both, since the failed run
    may be what they cure.
    """
    if detailed and plan.changes:
        return Exit.CHANGES
    if plan.settled:
        return Exit.RUN_FAILED
    if plan.held:
        return Exit.HELD
    return Exit.OK

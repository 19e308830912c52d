"""
Exit codes: one table for every command, because pipelines branch on them.

Which of them a plan means is `plan.exit`'s to say; this adds what only a command can meet.

A usage error is 1 and not click's 2, which here means "there are changes".
"""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """What a finished command says to the script that called it."""

    OK = 0
    """Converged, and every run succeeded."""
    ERROR = 1
    """Something is wrong with the command line, the tree, or the world."""
    CHANGES = 2
    """`plan --detailed-exitcode` only: applying would change something."""
    HELD = 3
    """
    A change is held back: it needs a permission, or waits for something. While the ledger is
    recovering everything is, also where nothing differs.
    """
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

"""
What names a job, and how far an agent's log was read: the parts of messages that rows keep.

They stand apart from `messages` because whoever only reads the ledger needs these two, and
building the thirty classes of messages takes 20 ms of each start. Standard library only,
Python 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Cursor", "JobKey"]


class JobKey(NamedTuple):
    """What makes two executions the same job: run uid, attempt (from 1), rank (from 0)."""

    run_uid: str
    attempt: int
    rank: int

    def __str__(self) -> str:
        return f"{self.run_uid}/{self.attempt}/{self.rank}"

    @classmethod
    def parse(cls, text: str) -> JobKey:
        """Read what `str` wrote; raises ValueError for anything else."""
        run_uid, attempt, rank = text.split("/")
        return cls(run_uid, int(attempt), int(rank))


@dataclass(frozen=True)
class Cursor:
    """
    How far a controller has read an agent's log of events.

    `log_id` is minted at the agent's start with an empty log; `number` is the last event
    taken in, 0 before the first.
    """

    log_id: str
    number: int

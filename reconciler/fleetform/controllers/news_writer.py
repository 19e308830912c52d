"""Writes down what hosts say of their jobs: several hosts in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fleetform.agents.protocol.messages import JobKey
from fleetform.controllers.batched_calls import BatchedCalls
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.ports import Clock, Gate, HostNews, Ledger


class _Unwritten(NamedTuple):
    """What a host has said."""

    news: HostNews
    is_local: bool


class NewsWriter:
    """
    Writes news of hosts in the order in which they came.

    `note` is called with the keys of jobs that moved. `note_commits` is called with the ledger's commits
    before a host of this machine hears that what it said is written.
    """

    def __init__(
        self,
        ledger: Ledger,
        gate: Gate,
        task_group: TaskGroup,
        *,
        fence: int,
        clock: Clock,
        note: Callable[[Sequence[JobKey]], None],
        note_commits: Callable[[int], None],
    ) -> None:
        self._ledger = ledger
        self._fence = fence
        self._clock = clock
        self._note_commits = note_commits
        self._commits = BatchedCalls(
            self._commit,
            gate=gate,
            task_group=task_group,
            name="news of hosts",
            done=lambda result: note(result[0]),
        )

    async def write(self, news: HostNews, *, is_local: bool) -> int:
        """
        Return how many commits the ledger has had once the news is written.

        Raises:
            LedgerUnavailable: It is not written; the host is not told that it is, and says it again.
        """
        _, commits = await self._commits(_Unwritten(news, is_local))
        return commits

    def _commit(self, together: Sequence[_Unwritten]) -> tuple[Sequence[JobKey], int]:
        moved = self._ledger.commit_news(
            [one.news for one in together], fence=self._fence, now_ms=self._clock.now_ms()
        )
        commits = self._ledger.commits()
        if any(one.is_local for one in together):
            # Only shares of this machine may be put back together with its state folder: for
            # them alone it is noted how much they must remember.
            self._note_commits(commits)
        return moved, commits

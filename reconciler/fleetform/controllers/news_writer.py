"""
Writes down what hosts say of their jobs: several hosts in one transaction.

What hosts say while a commit is under way goes into the next one together. A thousand hosts that speak
at once wait for a few commits, and not for a thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from fleetform.agents.protocol.messages import JobKey
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.ports import Clock, Gate, HostNews, Ledger


class _Unwritten(NamedTuple):
    """What a host has said; the future gets the number of the ledger's commits once it is written."""

    news: HostNews
    is_local: bool
    written: asyncio.Future[int]


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
        self._gate = gate
        self._task_group = task_group
        self._fence = fence
        self._clock = clock
        self._note = note
        self._note_commits = note_commits
        self._unwritten: list[_Unwritten] = []
        self._is_writing = False

    async def write(self, news: HostNews, *, is_local: bool) -> int:
        """
        Return how many commits the ledger has had once the news is written.

        Raises:
            LedgerUnavailable: It is not written; the host is not told that it is, and says it again.
        """
        written: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._unwritten.append(_Unwritten(news, is_local, written))
        if not self._is_writing:
            self._is_writing = True
            self._task_group.start(self._write_all(), name="news of hosts")
        return await written

    async def _write_all(self) -> None:
        try:
            while self._unwritten:
                together, self._unwritten = self._unwritten, []
                await self._write(together)
        finally:
            self._is_writing = False

    async def _write(self, together: Sequence[_Unwritten]) -> None:
        try:
            moved, commits = await self._gate(partial(self._commit, together))
        except Exception as problem:  # noqa: BLE001 -- each session that waits raises it itself
            for one in together:
                if not one.written.done():
                    one.written.set_exception(problem)
            return
        self._note(moved)
        for one in together:
            if not one.written.done():
                one.written.set_result(commits)

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

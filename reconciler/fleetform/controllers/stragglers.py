"""Waits for the first of several hosts to answer, and a while for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from fleetform.providers.contract.hosts import Host

STRAGGLERS_SECONDS = 10.0
"""
How long a fleet waits for the rest of its hosts once the first has answered.

To install an agent takes three seconds, and twice as long where many are installed at once. Runs of
the same plan wait for this.
"""


async def wait_for_first(tasks: Collection[asyncio.Future[Host]]) -> None:
    """Wait until all are over, or `STRAGGLERS_SECONDS` after the first that has an answer."""
    waiting = list(tasks)
    until: float | None = None
    clock = asyncio.get_running_loop().time
    while waiting:
        seconds = None if until is None else until - clock()
        if seconds is not None and seconds <= 0:
            return
        _, open_tasks = await asyncio.wait(
            waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        has_answer = any(one.done() and one.exception() is None for one in waiting)
        if has_answer and until is None:
            until = clock() + STRAGGLERS_SECONDS
        waiting = [one for one in waiting if one in open_tasks]

"""
Notices hosts whose heartbeats are missing, before their connections are given up.

A host without power closes no connection, and 45 seconds pass until its connection is given up. A host
that misses a heartbeat is `recovering` meanwhile: it gets no new jobs, and `status` names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from fleetform.controllers.host_session import Session

LOOK_SECONDS = 5.0
"""Pause between two looks at all sessions; with a thousand hosts a look takes less than a millisecond."""

_LATE_SECONDS = 2.0
"""A look so much later than planned proves nothing about hosts."""

MESSAGE = "no heartbeat"


async def watch_silence(
    sessions: Callable[[], Iterable[Session]], change: Callable[[Session], Awaitable[None]]
) -> None:
    """Call `change` for each session whose host has missed a heartbeat, or is heard again."""
    clock = asyncio.get_running_loop().time
    while True:
        began = clock()
        await asyncio.sleep(LOOK_SECONDS)
        if clock() - began > LOOK_SECONDS + _LATE_SECONDS:
            # This process was suspended, and what hosts said meanwhile is not read yet.
            continue
        for session in [one for one in sessions() if _differs(one)]:
            await change(session)


def _differs(session: Session) -> bool:
    return session.host is not None and session.host.is_overdue is not session.is_overdue

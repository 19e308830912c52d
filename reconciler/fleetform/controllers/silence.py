"""
What is written down of hosts that do not answer.

A host that has lost its connection is `recovering`, and after a grace `unreachable`. A host without
power closes no connection, and 45 seconds pass until its connection is given up: it is `recovering` from
the first heartbeat that is missing. Silence proves nothing about jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from fleetform.controllers.batched_calls import BatchedCalls
from fleetform.controllers.host_notices import HostNotices, without_name
from fleetform.controllers.host_session import Session
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.instance import InstanceState
from fleetform.model.ports import Clock, Gate, InstanceMark, Ledger, LedgerUnavailable

GRACE_MS = 10_000
"""
How long a host whose connection was lost is `recovering` before it is unreachable.

An agent that is restarted or updated, or a switch that restarts a link, is back within seconds, and
runs need not become unknown for that. What proves silence does not wait for it.
"""

HEARTBEATS_MISSED_SECONDS = 30.0
"""A connection that carried nothing for two heartbeats was no short break: the grace is over with it."""

LOOK_SECONDS = 5.0
"""Pause between two looks at all sessions; with a thousand hosts a look takes less than a millisecond."""

STEP_MS = 3000
"""How long a step may take from the row of a host to its wait for it; mostly some milliseconds."""

_LATE_SECONDS = 2.0
"""A look so much later than planned proves nothing about hosts."""

_OVERDUE = "no heartbeat"

_MAY_BE_OVERDUE = frozenset({InstanceState.READY, InstanceState.RECOVERING})


class Silence:
    """Of all hosts of one environment; `changed` is called when the row of a host has changed."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        clock: Clock,
        notices: HostNotices,
        task_group: TaskGroup,
        fence: int,
        tell_waiting: Callable[[Session], None],
        changed: Callable[[Session], None],
    ) -> None:
        """`tell_waiting` says why the steps that wait for a host wait."""
        self._clock = clock
        self._notices = notices
        self._task_group = task_group
        # When a switch fails, a thousand hosts fall silent at once.
        self._marks = BatchedCalls[InstanceMark, None](
            lambda marks: ledger.mark_instances(marks, fence=fence, now_ms=clock.now_ms()),
            gate=gate,
            task_group=task_group,
            name="marks of hosts",
        )
        self._tell_waiting = tell_waiting
        self._changed = changed

    async def watch(self, sessions: Callable[[], Iterable[Session]]) -> None:
        """Mark hosts that have missed a heartbeat, and those that are heard again."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await asyncio.sleep(LOOK_SECONDS)
            if clock() - began > LOOK_SECONDS + _LATE_SECONDS:
                # This process was suspended, and what hosts said meanwhile is not read yet.
                continue
            for session in [one for one in sessions() if _differs(one)]:
                await self._mark_overdue(session)

    async def begin(
        self, session: Session, problem: str, *, is_break: bool, is_reported: bool
    ) -> None:
        """
        Write down that a host does not answer.

        `is_break`: it may answer again in a moment. `is_reported`: a step has failed for it, and says so.
        """
        host, session.host = session.host, None
        if session.unheard_since_ms is None:
            session.unheard_since_ms = self._clock.boot_ms()
        problem = without_name(session.instance, problem)
        was_reached, now_ms = host is not None, self._clock.now_ms()
        heard_at_ms = None if host is None else now_ms - int(host.silent_seconds * 1000)
        if host is not None and host.silent_seconds < HEARTBEATS_MISSED_SECONDS:
            session.grace_until_ms = self._clock.boot_ms() + GRACE_MS
        if not is_break:
            session.grace_until_ms = 0
        left_ms = session.grace_until_ms - self._clock.boot_ms()
        session.end_grace()
        if left_ms > 0:
            session.grace = self._task_group.start(
                self._await_grace(session, left_ms / 1000, heard_at_ms),
                name=f"grace of host {session.instance.name}",
            )
        is_news = was_reached or problem != session.problem
        session.problem = problem
        if session.waiters and (is_news or problem != session.reported):
            self._tell_waiting(session)
            session.reported = problem
        elif is_reported:
            session.reported = problem
        elif problem != session.reported and not self._may_have_waiter_soon(session):
            self._notices.problem(session.instance, problem)
            session.reported = problem
        if not is_news:
            return
        state = InstanceState.RECOVERING if left_ms > 0 else InstanceState.UNREACHABLE
        if session.instance.is_bought and session.instance.is_joining:
            # It is not there yet, or boots for the first time.
            state = InstanceState.PROVISIONING
        await self._mark(session, state, problem, heard_at_ms)

    def _may_have_waiter_soon(self, session: Session) -> bool:
        """
        Tell whether a step may be about to wait for the host, and to say why it fails.

        The session of a host that was just declared begins with its row, and may fail before the step waits.
        """
        since_ms = session.unheard_since_ms
        if since_ms is None or not session.instance.is_joining:
            return False
        return self._clock.boot_ms() - since_ms < STEP_MS

    async def _mark_overdue(self, session: Session) -> None:
        """Write down that a connected host has missed a heartbeat, or has been heard again."""
        host = session.host
        # A suspect host is named already, and must not become ready by being heard.
        if host is None or session.instance.state not in _MAY_BE_OVERDUE:
            return
        is_overdue = host.is_overdue
        state = InstanceState.RECOVERING if is_overdue else InstanceState.READY
        heard_at_ms = self._clock.now_ms() - int(host.silent_seconds * 1000)
        if await self._mark(session, state, _OVERDUE if is_overdue else "", heard_at_ms):
            session.is_overdue = is_overdue

    async def _await_grace(self, session: Session, seconds: float, heard_at_ms: int | None) -> None:
        await asyncio.sleep(seconds)
        session.grace_until_ms = 0
        await self._mark(session, InstanceState.UNREACHABLE, session.problem, heard_at_ms)

    async def _mark(
        self, session: Session, state: InstanceState, problem: str, heard_at_ms: int | None
    ) -> bool:
        """Write down the state of a host; False where the ledger cannot be written."""
        try:
            await self._marks(InstanceMark(session.instance.uid, state, problem, heard_at_ms))
        except LedgerUnavailable:
            # Not written down: the next failure is news again, and tries once more.
            session.problem = ""
            return False
        self._changed(session)
        return True


def _differs(session: Session) -> bool:
    return session.host is not None and session.host.is_overdue is not session.is_overdue

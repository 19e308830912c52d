"""
Says that this end of a connection lives, and notices when the agent does not.

A heartbeat is sent in each interval of `link.HEARTBEAT_SECONDS` in which the agent's own was not answered:
the answer says the same. With a thousand hosts, heartbeats are most of what an idle controller does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleetform.agents.protocol.link import Pulse
from fleetform.agents.protocol.messages import Heartbeat


class Heartbeats:
    """Those of one connection, from version 2 of the protocol on."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        *,
        send: Callable[[Heartbeat], None],
        is_full: Callable[[], bool],
        silent: Callable[[], object],
    ) -> None:
        """
        `is_full` tells whether this end is the one that does not listen: too much waits to be read.
        `silent` is called once the agent has been silent for too long.
        """
        self._loop = loop
        self._seconds = seconds
        self._send = send
        self._is_full = is_full
        self._silent = silent
        self._pulse = Pulse()
        self._timer: asyncio.TimerHandle | None = None
        self._has_answered = False
        self._unanswered_ms = 0
        self._may_answer: Callable[[], bool] | None = None

    def begin(self) -> None:
        self._timer = self._loop.call_later(self._seconds, self._beat)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._may_answer = None

    def hear(self) -> None:
        """Note that bytes have arrived, whatever they mean."""
        self._pulse.hear()

    def take(self, heartbeat: Heartbeat) -> None:
        """Answer a heartbeat of the agent at once, or as soon as `answer` allows it."""
        self._unanswered_ms = heartbeat.at_ms
        self._answer()

    def answer(self, may: Callable[[], bool]) -> None:
        """Answer each heartbeat of the agent from now on, as long as `may` allows it."""
        self._may_answer = may
        self._answer()

    def _answer(self) -> None:
        if not self._unanswered_ms or self._may_answer is None:
            return
        at_ms, self._unanswered_ms = self._unanswered_ms, 0
        if self._may_answer():
            self._send(Heartbeat(at_ms))
            self._has_answered = True

    def _beat(self) -> None:
        if self._is_full():
            self._pulse.hear()
        if self._pulse.is_dead():
            self._silent()
            return
        if not self._has_answered:
            self._send(Heartbeat())
        self._has_answered = False
        self.begin()

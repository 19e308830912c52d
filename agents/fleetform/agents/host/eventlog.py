"""
News not yet acknowledged, numbered.

The log begins anew with each life of the agent, under a new id: a controller with a cursor into
another log takes all records instead, which are the truth anyway. Only acknowledged events go.
"""

from __future__ import annotations

from collections import deque

from fleetform.agents.protocol.messages import Cursor, Event, JobRecord


class EventLog:
    """Attributes: log_id names this log; `oldest` and `newest` are as in `Welcome`."""

    def __init__(self, log_id: str) -> None:
        self.log_id = log_id
        self.newest = 0
        self._events: deque[Event] = deque()

    @property
    def oldest(self) -> int:
        return self._events[0].number if self._events else self.newest + 1

    def append(self, record: JobRecord) -> Event:
        self.newest += 1
        event = Event(self.newest, record)
        self._events.append(event)
        return event

    def acknowledge(self, cursor: Cursor) -> None:
        if cursor.log_id == self.log_id:
            while self._events and self._events[0].number <= cursor.number:
                self._events.popleft()

    def covers(self, cursor: Cursor | None) -> bool:
        """Tell whether the events after the cursor are all still here."""
        return (
            cursor is not None
            and cursor.log_id == self.log_id
            and self.oldest - 1 <= cursor.number <= self.newest
        )

    def after(self, number: int) -> list[Event]:
        return [event for event in self._events if event.number > number]

"""
Sessions of processes that stand still in the middle of a batch, with locks that others wait for.

`idle_in_transaction_session_timeout` ends a session that waits for its client's next statement. One
that waits for the rest of a batch counts as active: no limit of the server's own ends it before
version 17 (`transaction_timeout`). A process is paused there more often than one would think, because
the server's process is woken, and takes the processor, by the first part of what was sent.
"""

from __future__ import annotations

import time

from fleetform.store.postgres.connection import IDLE_SECONDS, Connection

__all__ = ["end_stalled"]

_LOOK_SECONDS = 0.1
_LOOKS = 30
"""A batch that goes on is caught waiting now and then, and not thirty times in three seconds."""

# ruff: noqa: S608 -- put together from a constant of this room.

_STALLED = (
    "SELECT a.pid FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid()"
    " AND a.datname = current_database() AND a.usename = current_user"
    " AND a.state <> 'idle' AND a.wait_event_type = 'Client' AND a.wait_event = 'ClientRead'"
    f" AND clock_timestamp() - a.query_start > interval '{IDLE_SECONDS} seconds'"
    " AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.granted"
    " AND l.relation IN (CAST('meta' AS regclass), CAST('leases' AS regclass)))"
)


def end_stalled(connection: Connection) -> bool:
    """
    End the sessions that keep others from this ledger, and whose process sends nothing for them.

    To be called when a lock was waited for in vain. What they had not committed is rolled back, as
    with a connection that is lost, and that is what their process finds when it goes on.

    Returns:
        Whether there was one.
    """
    stalled: set[int] | None = None
    for _ in range(_LOOKS):
        seen = {int(pid) for (pid,) in connection.execute(_STALLED)}
        stalled = seen if stalled is None else stalled & seen
        if not stalled:
            return False
        time.sleep(_LOOK_SECONDS)
    for pid in sorted(stalled or ()):
        connection.execute("SELECT pg_terminate_backend(CAST(? AS integer))", (pid,))
    return True

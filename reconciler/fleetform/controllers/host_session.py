"""What the manager knows of one host: its connection, its records, and what was reported of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
from fleetform.model.instance import Instance
from fleetform.providers.contract.hosts import Host


@dataclass(slots=True)
class Session:
    """
    One host as the manager knows it.

    `records` are what its agent said last, by job; None until a hello has brought a snapshot
    or events. `host` is None while the agent does not answer.
    """

    instance: Instance
    host: Host | None = None
    records: dict[JobKey, JobRecord] = field(default_factory=dict)
    cursor: Cursor | None = None
    problem: str = ""
    reported: str = ""
    """The problem that was reported last: one that comes back at once is not reported again."""
    machine: tuple[str, str] = ("", "")
    """Id and boot id of the machine that answered last."""
    noted: set[str] = field(default_factory=set)
    """What limits the host although it works, as far as it was reported."""
    waiters: list[asyncio.Future[Host]] = field(default_factory=list)
    is_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a step that waits for the host: the pause before the next try ends."""
    is_wait_reported: bool = False
    """The reason why steps wait for the host was reported since the first of them waits."""
    agent_found: str = ""
    """The instance whose agent was in the folder of this one, and that the ledger did not have."""
    task: asyncio.Task[None] | None = None
    is_installed: bool = False
    """Its agent has answered since the host was last made sure of."""
    grace_until_ms: int = 0
    """Until when it is recovering, by a clock that counts suspend; 0: it has lost no connection."""
    grace: asyncio.Task[None] | None = None
    """Marks it unreachable when that time is over."""
    is_overdue: bool = False
    """It has missed a heartbeat, and its row says so."""
    generation: int = 0
    """Number of its hello, never used twice: a call of an older session is known as such."""
    unheard_since_ms: int | None = None
    """
    Since when the host can hear nothing from this process, by a clock that counts suspend; None while
    it can. At first when this process began: what an earlier manager said was before that.
    """

    def end_grace(self) -> None:
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None

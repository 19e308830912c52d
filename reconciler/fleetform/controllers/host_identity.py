"""Tells whether the machine that answers is that of another host, and whether that host leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from fleetform.controllers.host_session import Session
from fleetform.model.instance import LOCAL, Instance, InstanceState
from fleetform.providers.contract.errors import AgentFound, SameMachine, TemporaryError

RowOf = Callable[[str], Awaitable[Instance | None]]
"""Reads the instance with this uid from the ledger; None: it is terminated."""


async def check_is_lost(session: Session, found: AgentFound, row_of: RowOf) -> None:
    """
    Tell an agent that the ledger lost from that of a host that is about to leave its fleet.

    Raises:
        TemporaryError: The agent leaves, or may just have left.
    """
    name = session.instance.name
    if (other := await row_of(found.uid)) is not None:
        raise TemporaryError(
            f"host {name} is leaving fleet {other.fleet}: it joins fleet"
            f" {session.instance.fleet} when it has gone"
        )
    # It may have been released between the look at the host and that at the ledger.
    if session.agent_found != found.uid:
        session.agent_found = found.uid
        raise TemporaryError(f"host {name} has the agent of another instance")


async def refuse_same_machine(
    session: Session, sessions: Iterable[Session], machine: tuple[str, str], row_of: RowOf
) -> None:
    """
    Keep the first of two names that lead to one machine.

    Raises:
        SameMachine: Another host has answered as this machine.
        TemporaryError: That one is leaving, as one does that gets another name.
    """
    session.machine = ("", "")
    if session.instance.provider == LOCAL or "" in machine:
        return
    for other in tuple(sessions):
        if other.machine != machine or other is session:
            continue
        # The session may not have heard yet that its host leaves: a step has just begun that.
        row = await row_of(other.instance.uid)
        if row is None:
            continue
        same = (
            f"host {session.instance.name} is the same machine as host {other.instance.name}"
            f" of fleet {other.instance.fleet}"
        )
        if row.state is InstanceState.TERMINATING:
            raise TemporaryError(f"{same}, which is leaving: it joins when that one has gone")
        raise SameMachine(
            f"{same}: its CPUs, memory and GPUs would be allocated twice",
            advice="remove one of the two names from the configuration",
        )
    session.machine = machine

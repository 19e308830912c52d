"""
Commands that jobs start in other ranks of their runs, carried from host to host.

The agent of the first host says which job asks; only a rank of the same attempt can be meant, on a host
whose agent says that it runs. What the command prints and reads passes through here, with the credit of
both connections: `mpirun` uses it to start its daemons, which then speak to each other directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.states import JobState
from fleetform.controllers.host_session import Session
from fleetform.controllers.task_group import TaskGroup
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import Host
from fleetform.providers.contract.job_streams import ExecRequest, ExecSession, JobAddress, RankCall

START_SECONDS = 120.0
"""How long the other rank may take to run: nodes of a run may start one after another."""

_LOOK_SECONDS = 0.25

_ENDED = frozenset({JobState.FINISHED})


@dataclass(frozen=True, slots=True)
class OtherRank:
    """A job that runs, and the open session with its host."""

    host: Host
    job: JobAddress


Find = Callable[[RankCall], OtherRank | str | None]
"""Returns where a call leads: a rank, why it leads nowhere, or None where the rank does not run yet."""


def find_rank(
    session: Session, sessions: Iterable[Session], call: RankCall
) -> OtherRank | str | None:
    """Find the job that a job of the host of `session` may start a command in."""
    caller = call.caller
    asking = session.records.get(caller.key)
    if asking is None or asking.job_uid != caller.job_uid or asking.state in _ENDED:
        return "the job that asks does not run"
    key = caller.key._replace(rank=call.rank)
    for other in sessions:
        record = other.records.get(key)
        if record is not None and record.state in _ENDED:
            return f"rank {call.rank} is over: it is {record.state.value}"
        if record is not None and record.state is JobState.RUNNING and other.host is not None:
            return OtherRank(other.host, JobAddress(key, record.job_uid))
    return None


async def serve_rank_calls(host: Host, find: Find, task_group: TaskGroup) -> None:
    """Carry out what the jobs of one host ask for, until its connection ends."""
    async for call in host.ranks.calls():
        task_group.start(_carry_out(call, find, task_group), name=f"rank call of {call.caller.key}")


async def _carry_out(call: RankCall, find: Find, task_group: TaskGroup) -> None:
    try:
        target = await _await_rank(call, find)
        if isinstance(target, str):
            call.refuse(target)
            return
        try:
            request = ExecRequest(target.job.key, target.job.job_uid, call.argv)
            opened = await target.host.ranks.open_exec(request)
        except ProviderError as error:
            call.refuse(str(error))
            return
        try:
            call.accept()
            await _join(call, opened, task_group)
        finally:
            await opened.close()
    except ProviderError:
        pass  # The caller's own connection is lost; its agent says so.


async def _await_rank(call: RankCall, find: Find) -> OtherRank | str:
    for _ in range(int(START_SECONDS / _LOOK_SECONDS)):
        target = find(call)
        if target is not None:
            return target
        await asyncio.sleep(_LOOK_SECONDS)
    return f"rank {call.rank} does not run"


async def _join(call: RankCall, opened: ExecSession, task_group: TaskGroup) -> None:
    feeding = task_group.start(_feed(call, opened), name="input of a rank call")
    try:
        try:
            async for data, is_error in opened.output():
                await call.write(data, is_error=is_error)
            end = opened.end()
        except ProviderError as error:
            call.fail(str(error))
        else:
            call.end(end)
    finally:
        feeding.cancel()


async def _feed(call: RankCall, opened: ExecSession) -> None:
    """Carry input, and end the command when its caller leaves."""
    try:
        async for kind, content in call.input():
            if kind == exec_pieces.DATA:
                await opened.write(content)
            elif kind == exec_pieces.END_OF_INPUT:
                opened.end_input()
            elif kind == exec_pieces.SIGNAL:
                opened.signal(exec_pieces.parse_signal(content))
    except (ProviderError, ValueError):
        pass  # One of the connections is lost, or the caller sends an unknown signal.
    await opened.close()

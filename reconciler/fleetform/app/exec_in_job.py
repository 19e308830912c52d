"""
Connects to the agent of a running job's host, for commands inside the job and for its ports.

No controller takes part: what is read of the ledger is where the job is, and everything else is
between this process and the agent (ADR 47).

A host that died looks like a slow one for as long as a connection may take, so the person who waits is
told within seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from fleetform.app.ledger import host_provider
from fleetform.app.problems import Problem
from fleetform.model.instance import request_of
from fleetform.providers.contract.errors import PermanentError, ProviderError, TemporaryError

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.providers.contract.job_streams import JobStreams
__all__ = ["ExecProblem", "Say", "host_problems", "job_streams", "open_streams", "watch_host"]

T = TypeVar("T")
Say = Callable[[str], None]
"""Shows a line to the user."""

CONNECT_SECONDS = 60.0
"""A sign-in over two jump hosts takes some seconds; beyond this the host does not answer."""

_SILENT_SECONDS = 2.0
"""After so long without an answer a notice says so; a host on another continent needs less."""

_PING_SECONDS = 1.0
"""How often an open connection is asked for an answer."""

_RESTART_SECONDS = 10.0
"""How long a connection that fails at once is tried again: an agent that was killed is started again by then."""

_AGAIN_SECONDS = 1.0


class ExecProblem(Problem):
    """The command could not be started, or its connection was lost."""

    exit_code = 255
    """That of `ssh`: few commands have it."""


@contextlib.asynccontextmanager
async def job_streams(
    workspace: Workspace, instance: Instance, say: Say
) -> AsyncIterator[JobStreams]:
    """
    Connect to a host for as long as the block lasts, and say when it does not answer.

    A connection that fails at once is tried again for a few seconds: nothing has begun over it.

    Raises:
        ExecProblem: The host cannot be reached, refuses, or the connection is lost.
    """
    streams = await _open_again(workspace, instance, say)
    watching = asyncio.create_task(watch_host(streams, instance, say))
    try:
        with host_problems(instance):
            yield streams
    finally:
        watching.cancel()
        await streams.close()


async def open_streams(workspace: Workspace, instance: Instance, say: Say) -> JobStreams:
    """
    Connect to a host, for several commands and ports of its jobs.

    Raises:
        ExecProblem: The host cannot be reached.
    """
    hosts = host_provider(workspace)
    with host_problems(instance):
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await _telling(hosts.open_streams(request_of(instance)), instance, say)
        except TimeoutError:
            raise TemporaryError(f"host {instance.name} does not answer") from None


async def _open_again(workspace: Workspace, instance: Instance, say: Say) -> JobStreams:
    until, has_failed = time.monotonic() + _RESTART_SECONDS, False
    while True:
        try:
            return await open_streams(workspace, instance, say)
        except ExecProblem as problem:
            is_permanent = isinstance(problem.__cause__, PermanentError)
            if is_permanent or time.monotonic() + _AGAIN_SECONDS > until:
                raise
            if not has_failed:
                say(f"{problem.message}; trying again")
            has_failed = True
        await asyncio.sleep(_AGAIN_SECONDS)


async def watch_host(streams: JobStreams, instance: Instance, say: Say) -> None:
    """Ask the host for an answer again and again, and say when none comes; ends with the connection."""
    with contextlib.suppress(ProviderError):
        while True:
            await _telling(streams.ping(), instance, say)
            await asyncio.sleep(_PING_SECONDS)


async def _telling(answer: Awaitable[T], instance: Instance, say: Say) -> T:
    """Await an answer of a host; say when it takes long, and when it comes after all."""
    asking = asyncio.ensure_future(answer)
    try:
        if (await asyncio.wait([asking], timeout=_SILENT_SECONDS))[0]:
            return await asking
        say(f"host {instance.name} does not answer; trying again")
        found = await asking
        say(f"host {instance.name} answers again")
        return found
    finally:
        asking.cancel()


@contextlib.contextmanager
def host_problems(instance: Instance) -> Iterator[None]:
    """Raise what a provider raises with the next command to type."""
    try:
        yield
    except PermanentError as error:
        raise ExecProblem(str(error), error.advice or "`fleetform ps` shows what runs") from error
    except ProviderError as error:
        raise ExecProblem(str(error), _advice(instance)) from error


def _advice(instance: Instance) -> str:
    if instance.provider == "ssh":
        return f"`fleetform ssh {instance.name}` shows whether the host can be reached"
    return f"`fleetform fleet show {instance.fleet}` shows the state of its hosts; then try again"

"""
Opens commands inside a running job, and connections to its ports, straight at the agent of its host.

No controller takes part: what is read of the ledger is where the job is, and everything else is
between this process and the agent (ADR 47).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, TypeVar

from fleetform.app.ledger import host_provider
from fleetform.app.problems import Problem
from fleetform.model.instance import request_of
from fleetform.providers.contract.errors import PermanentError, ProviderError

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.providers.contract.hosts import ExecRequest, ExecSession, JobStreams

T = TypeVar("T")

CONNECT_SECONDS = 60.0
"""A sign-in over two jump hosts takes some seconds; beyond this the host does not answer."""


class ExecProblem(Problem):
    """The command could not be started, or its connection was lost."""

    exit_code = 255
    """That of `ssh`: few commands have it."""


async def open_exec(workspace: Workspace, instance: Instance, command: ExecRequest) -> ExecSession:
    """
    Start a command in a job of this host.

    Raises:
        ExecProblem: The host cannot be reached, or its agent refuses.
    """
    hosts = host_provider(workspace)
    return await _in_time(hosts.open_exec(request_of(instance), command), instance)


async def open_streams(workspace: Workspace, instance: Instance) -> JobStreams:
    """
    Connect to a host, for several commands and ports of its jobs.

    Raises:
        ExecProblem: The host cannot be reached.
    """
    hosts = host_provider(workspace)
    return await _in_time(hosts.open_streams(request_of(instance)), instance)


async def _in_time(opening: Awaitable[T], instance: Instance) -> T:
    with host_problems(instance):
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await opening
        except TimeoutError:
            raise ExecProblem(f"host {instance.name} does not answer", _advice(instance)) from None


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

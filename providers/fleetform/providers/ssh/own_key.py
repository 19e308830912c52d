"""
How a new host gets a host key of its own in place of the first one.

Everyone who can read what the host was told at its first boot knows the first key. So the host makes
another one and reports it over the first connection; only then it becomes the key of the host, and
later connections accept no other.

A controller may be killed between any two steps. Before the host uses its own key, both keys are
pinned, and they stay so until a new connection has proven the second.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fleetform.providers.contract.errors import PermanentError, ProviderError, TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest, Pin
from fleetform.providers.ssh import own_key_program, setup
from fleetform.providers.ssh.driver import drive
from fleetform.providers.ssh.setup import Steps

if TYPE_CHECKING:
    from fleetform.providers.ssh.connection import Connection

Connect = Callable[[InstanceRequest], Awaitable["Connection"]]

_RESTART_SECONDS = 20.0
"""How long the SSH server of a busy host may take until it has read its keys again."""

_LOOK_SECONDS = 0.2


async def replace_first_key(
    request: InstanceRequest, first: str, pin: Pin, connect: Connect
) -> str:
    """
    Replace the first key of a host by one that the host makes; returns it, pinned alone.

    Args:
        request: `host_key` are the pinned keys: the first one, or what `pin` got in an earlier try.
        first: Public half of the first key.
        pin: Called with both keys before the host changes, and with its own key at the end.
        connect: Opens a new connection that accepts the pinned keys of the request and no other.

    Raises:
        TemporaryError: The host cannot be reached; the same call continues where this one was.
        PermanentError: It has none of the keys, or refuses the step.
    """
    assert request.host_key, "a host is never reached without a key"
    try:
        connection = await connect(request)
    except TemporaryError as problem:
        # An instance runs before its SSH server does.
        raise TemporaryError(
            f"{problem}; it may still be booting", delay_seconds=problem.delay_seconds
        ) from problem
    try:
        own = connection.host_key
        if own == first:
            own = await drive(connection, report(request, first))
            if own == first:
                raise PermanentError(f"instance {request.name}: its host reports its first key")
            await pin(f"{first}\n{own}")
            await drive(connection, install(request, own))
    finally:
        await connection.close()
    await _prove(dataclasses.replace(request, host_key=own), connect)
    await pin(own)
    return own


async def _prove(request: InstanceRequest, connect: Connect) -> None:
    """Connect once more, by the host's own key, as soon as its SSH server has read it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _RESTART_SECONDS
    while True:
        try:
            connection = await connect(request)
        except ProviderError:
            # It may be the server of before, which still has the first key, or one that starts.
            if loop.time() >= until:
                raise
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            await connection.close()
            return


def report(request: InstanceRequest, first: str) -> Steps[str]:
    """Have the host make its own key, unless it has; returns type and key."""
    answer = yield from _operation(request, {"operation": "report", "first": first})
    return str(answer["key"])


def install(request: InstanceRequest, own: str) -> Steps[None]:
    """Have the SSH server of the host use the key that was reported."""
    yield from _operation(request, {"operation": "install", "own": own})


def _operation(request: InstanceRequest, asked: dict[str, str]) -> Steps[Any]:
    python = yield from setup.find_python(request)
    answer = yield from setup.run_program(request.name, python, "host key", own_key_program, asked)
    if "error" in answer:
        raise PermanentError(f"instance {request.name}: {answer['error']}", advice=answer["advice"])
    return answer

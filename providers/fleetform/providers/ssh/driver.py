"""Runs the commands of a procedure of `setup` over an SSH connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fleetform.providers.ssh.setup import Steps

if TYPE_CHECKING:
    from fleetform.providers.ssh.connection import Connection

_Answer = TypeVar("_Answer")


async def drive(connection: Connection, steps: Steps[_Answer]) -> _Answer:
    """Run the commands of a procedure over SSH; returns what it returns."""
    try:
        command = next(steps)
        while True:
            command = steps.send(await connection.run(command))
    except StopIteration as end:
        answer: _Answer = end.value
        return answer

"""
One stack, whose state is in PostgreSQL, changed from two machines: the folders of each are its own.

Whoever takes the fence is the controller. The files of the shelf are the witness for what was created.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from contract.ledgers import ENVIRONMENT, CountingIds, StillClock
from fleetform.agents.host import processes
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.pulumi.engine.program import Program, Resource
from fleetform.providers.pulumi.engine.stack import Outcome, Stack
from fleetform.providers.pulumi.recovery.recover import recover
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres
from fleetform.store.postgres.stacks import PostgresStacks
from postgres_server import PASSWORD, PostgresServer
from pulumi_shelf import ITEM, Shelf

pytestmark = pytest.mark.waits

NAMES = ("a", "b", "c")


def chain() -> Program:
    """Return a program whose items are created one after the other."""
    made = [Resource("pulumi:providers:shelf", "shelf")]
    for before, name in itertools.pairwise(("", *NAMES)):
        depends_on = (before,) if before else ()
        tags = {"tags": {"fleetform:uid": name}}
        made.append(Resource(ITEM, name, tags, provider="shelf", depends_on=depends_on))
    return Program(tuple(made))


class Machines:
    """Machines that share the shelf and a database."""

    def __init__(self, shelf: Shelf, address: Address, closing: contextlib.ExitStack) -> None:
        self.shelf = shelf
        self._address = address
        self._closing = closing
        ledger = open_postgres(address, ENVIRONMENT, CountingIds(), StillClock())
        self._ledger = closing.enter_context(contextlib.closing(ledger))

    def take_over(self, machine: str) -> Any:
        """Become the controller on a machine; return its stack, which is not open yet."""
        records = PostgresStacks(self._address, ENVIRONMENT)
        self._closing.enter_context(contextlib.closing(records))
        records.act_under(self._ledger.take_fence(who=machine, now_ms=1))
        backend = records.backend()
        return self.shelf.open(
            folder=self.shelf.folder.parent / machine / "stack",
            backend=backend.url,
            variables=backend.variables,
            breaks_locks=backend.breaks_locks,
        )


@pytest.fixture
def machines(shelf: Shelf, postgres: PostgresServer) -> Iterator[Machines]:
    address = Address.parse(postgres.url)
    connection = Connection(address, schema=schema_of(ENVIRONMENT))
    connection.script(f"DROP SCHEMA IF EXISTS {schema_of(ENVIRONMENT)} CASCADE")
    connection.close()
    with contextlib.ExitStack() as closing:
        yield Machines(shelf, address, closing)


async def complete(machines: Machines, machine: str) -> None:
    """Do what a controller does that takes over: settle the stack, and create what is missing."""
    async with machines.take_over(machine) as stack:
        inventory = machines.shelf.inventory()
        await recover(stack, chain(), inventory, settle_seconds=0.5, look_seconds=0.1)
        await stack.preview(chain())
        (await stack.up(chain())).require()


async def unchanged(machines: Machines, machine: str) -> bool:
    async with machines.take_over(machine) as stack:
        return await stack.preview(chain()) == ()


@contextlib.asynccontextmanager
async def creating(
    machines: Machines, machine: str
) -> AsyncIterator[tuple[Stack, asyncio.Task[Outcome]]]:
    """Start an `up` whose first item exists, and whose engine waits for the answer of the cloud."""
    machines.shelf.control(after_create_seconds=2.0)
    async with machines.take_over(machine) as stack:
        await stack.preview(chain())
        change = asyncio.create_task(stack.up(chain()))
        while not machines.shelf.names():
            assert not change.done()
            await asyncio.sleep(0.01)
        yield stack, change


def test_another_machine_changes_the_same_stack(machines):
    """It finds the state, and needs nothing else of the first one than the passphrase."""

    async def main():
        await complete(machines, "first")
        assert machines.shelf.names() == list(NAMES)
        assert await unchanged(machines, "second")
        async with machines.take_over("second") as stack:
            (await stack.destroy()).require()
            await stack.remove()
        assert machines.shelf.names() == []

    asyncio.run(main())


def test_a_paused_engine_changes_nothing_when_it_continues(machines):
    """Its successor adopts what it had created; it writes no state, so it creates no other item."""

    async def main():
        async with creating(machines, "first") as (stack, change):
            paused = [stack.pid, *processes.descendants(stack.pid)]
            processes.send(paused, signal.SIGSTOP)
            machines.shelf.control()
            await complete(machines, "second")
            processes.send(paused, signal.SIGCONT)
            with pytest.raises(ProviderError, match="another controller has taken over"):
                (await change).require()
        assert machines.shelf.names() == list(NAMES)
        assert await unchanged(machines, "second")

    asyncio.run(main())


def test_two_at_once(machines):
    """The one that took over completes the change, and the other one is refused."""

    async def main():
        async with creating(machines, "first") as (_, change):
            machines.shelf.control()
            await complete(machines, "second")
            with pytest.raises(ProviderError, match="another controller has taken over"):
                (await change).require()
        assert machines.shelf.names() == list(NAMES)
        assert await unchanged(machines, "second")

    asyncio.run(main())


def test_a_machine_that_died_has_left_its_lock(machines):
    """The lock of the engine is deleted, and what was in creation is adopted."""

    async def main():
        with contextlib.suppress(ProviderError):
            async with creating(machines, "first") as (stack, change):
                died = [stack.pid, *processes.descendants(stack.pid)]
                processes.send(died, signal.SIGKILL)
                with pytest.raises(ProviderError):
                    await change
        machines.shelf.control()
        await complete(machines, "second")
        assert machines.shelf.names() == list(NAMES)
        assert await unchanged(machines, "second")

    asyncio.run(main())


def test_no_process_has_the_password_in_its_arguments(machines):
    """The CLI and its plugins get it as a variable."""

    async def main():
        async with creating(machines, "first") as (stack, change):
            found = [stack.pid, *processes.descendants(stack.pid)]
            said = [word for pid in found for word in processes.command_line(pid)]
            (await change).require()
        assert any(word.endswith(b"/pulumi") for word in said)
        assert not any(PASSWORD.encode() in word for word in said)

    asyncio.run(main())

"""A change that was cut off is recovered: nothing is lost, and nothing is created twice."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal

import pytest

from fleetform.providers.contract.errors import PermanentError, StackLocked
from fleetform.providers.pulumi.recovery.recover import rebuild_state, recover
from pulumi_shelf import items

pytestmark = pytest.mark.waits


async def apply(stack, program):
    await stack.preview(program)
    (await stack.up(program)).require()


def leave_pending(shelf, name, kind, **inputs):
    """Write the state as a change that was cut off leaves it: with an operation, not its result."""
    with shelf.checkpoint("one") as state:
        (entry,) = [one for one in state["resources"] if one["urn"].endswith(f"::{name}")]
        pending = {**entry, "inputs": {**entry["inputs"], **inputs}}
        if kind == "creating":
            if not inputs:
                state["resources"].remove(entry)
            del pending["id"], pending["outputs"]
        state["pending_operations"] = [{"resource": pending, "type": kind}]


def test_up_is_refused_until_recovery(shelf):
    """The engine alone would warn and create the item a second time."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a"))
            leave_pending(shelf, "a", "creating")
            await stack.preview(items("a"))
            with pytest.raises(PermanentError, match="cut off"):
                await stack.up(items("a"))

            settlement = await recover(stack, items("a"), shelf.inventory())
            assert settlement is not None
            assert settlement.adopted == ("a",)
            assert await stack.preview(items("a")) == ()
            assert await recover(stack, items("a"), shelf.inventory()) is None

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_create_that_happened_twice_leaves_an_orphan(shelf):
    """The first of the inventory is adopted; the other one is listed and not touched."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a"))
            shelf.double("a")
            leave_pending(shelf, "a", "creating")
            existing = await shelf.inventory().existing()
            settlement = await recover(stack, items("a"), shelf.inventory())
            assert settlement is not None
            assert [one.id for one in settlement.orphans] == [existing[1].id]
            assert await stack.preview(items("a")) == ()

    asyncio.run(play())
    assert shelf.names() == ["a", "a"]


def test_a_create_that_did_not_happen_is_dropped_after_a_wait(shelf):
    """A list may be late, so its silence counts only then; the next `up` creates the item."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a"))
            leave_pending(shelf, "a", "creating")
            shelf.remove(next(iter(shelf.items())))
            settlement = await recover(
                stack, items("a"), shelf.inventory(), settle_seconds=0.3, look_seconds=0.1
            )
            assert settlement is not None
            assert settlement.dropped == ("a",)
            await apply(stack, items("a"))

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_list_that_is_late_is_waited_for(shelf):
    """The item appears in the third look, and is adopted."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a"))
            leave_pending(shelf, "a", "creating")
            settlement = await recover(
                stack, items("a"), shelf.inventory(late_looks=2), look_seconds=0.01
            )
            assert settlement is not None
            assert settlement.adopted == ("a",)

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_delete_is_settled_by_what_exists(shelf):
    """What is gone leaves the state; what is not gone stays in it and is deleted by the next `up`."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", "b"))
            by_name = {item["name"]: key for key, item in shelf.items().items()}
            leave_pending(shelf, "b", "deleting")
            settlement = await recover(stack, items("a", "b"), shelf.inventory())
            assert settlement is not None
            assert settlement.kept == ("b",)
            leave_pending(shelf, "b", "deleting")
            shelf.remove(by_name["b"])
            settlement = await recover(stack, items("a", "b"), shelf.inventory())
            assert settlement is not None
            assert settlement.removed == ("b",)
            assert await stack.preview(items("a")) == ()

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_replacement_that_was_cut_off_keeps_one(shelf):
    """The new item is adopted although both have the uid; the next `up` deletes the old one."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", size=1))
            (old,) = shelf.items()
            shelf.double("a", size=2)
            leave_pending(shelf, "a", "creating", size=2)
            settlement = await recover(stack, items("a", size=2), shelf.inventory())
            assert settlement is not None
            assert settlement.adopted == ("a",)
            await apply(stack, items("a", size=2))
            assert old not in shelf.items()

    asyncio.run(play())
    assert shelf.names() == ["a"]


@pytest.mark.parametrize("lost", ["state", "."])
def test_a_lost_state_is_rebuilt(shelf, lost):
    """By the uids in the inventory; what does not exist is left for the next plan."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", "b"))
        shutil.rmtree(shelf.state / "pulumi" / lost)
        async with shelf.open() as stack:
            if lost == "state":
                with pytest.raises(PermanentError, match="the state has no stack one"):
                    await stack.preview(items("a"))
            rebuilt = await rebuild_state(stack, items("a", "b", "c"), shelf.inventory())
            assert (rebuilt.adopted, rebuilt.missing) == (("a", "b"), ("c",))
            planned = await stack.preview(items("a", "b", "c"))
            assert [(one.action.value, one.name) for one in planned] == [("create", "c")]
            (await stack.up(items("a", "b", "c"))).require()
            assert await stack.preview(items("a", "b", "c")) == ()

    asyncio.run(play())
    assert shelf.names() == ["a", "b", "c"]


def test_a_lock_of_a_dead_process_is_removed(shelf):
    """The engine's own locks have no end; ours proves that their process is dead."""

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))
        lock = shelf.leave_lock("one")
        async with shelf.open() as stack:
            await apply(stack, items("a"))
        assert not lock.exists()

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_lock_of_another_machine_is_respected(shelf):
    """Our lock of a file says nothing about processes there; the message names them."""

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))
        lock = shelf.leave_lock("one", hostname="elsewhere")
        async with shelf.open() as stack:
            await stack.preview(items("a"))
            with pytest.raises(StackLocked, match=r"@elsewhere \(pid 1\) has the stack locked"):
                await stack.up(items("a"))
        assert json.loads(lock.read_text())["pid"] == 1
        async with shelf.open(breaks_locks=True) as stack:
            await apply(stack, items("a"))

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_paused_runner_keeps_its_stack(shelf):
    """No time proves that it is dead: it is named, and does its work when it wakes up."""

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))
            os.kill(stack.pid, signal.SIGSTOP)
            up = asyncio.create_task(stack.up(items("a")))
            try:
                with pytest.raises(StackLocked, match=f"pid {stack.pid}"):
                    async with shelf.open():
                        pass
            finally:
                os.kill(stack.pid, signal.SIGCONT)
            (await up).require()

    asyncio.run(play())
    assert shelf.names() == ["a"]

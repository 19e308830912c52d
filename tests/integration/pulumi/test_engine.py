"""One stack through the real engine: preview, up, refresh, and what a plan refuses."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import signal
import stat
from pathlib import Path

import pytest

from fleetform.agents.host import processes
from fleetform.providers.contract.errors import PermanentError, StackLocked, TemporaryError
from fleetform.providers.pulumi.engine.changes import HIDDEN, Action, Change, Phase
from fleetform.providers.pulumi.engine.deployment import resources_of
from fleetform.providers.pulumi.engine.program import Program, Resource, output_of, secret
from pulumi_shelf import ITEM, items

pytestmark = pytest.mark.waits


async def apply(stack, program, **options):
    await stack.preview(program)
    return await stack.up(program, **options)


def told(changes):
    return sorted((change.action.value, change.name) for change in changes)


def test_a_program_is_created_changed_and_removed(shelf):
    """A preview lists what `up` then does, and one after it is empty."""

    async def play():
        async with shelf.open() as stack:
            planned = await stack.preview(items("a", "b"))
            assert shelf.names() == []
            seen: list[Change] = []
            outcome = await stack.up(items("a", "b"), on_change=seen.append)
            assert told(planned) == told(outcome.changes) == [("create", "a"), ("create", "b")]
            assert [one.phase for one in seen if one.name == "a"] == [Phase.STARTED, Phase.DONE]
            assert {one.id for one in outcome.changes} == set(shelf.items())
            assert await stack.preview(items("a", "b")) == ()
            state = resources_of(await stack.export_state())
            assert {one.outputs["address"] for one in state} == {
                f"address-of-{one}" for one in shelf.items()
            }

            assert told((await apply(stack, items("b"))).changes) == [("delete", "a")]
            assert shelf.names() == ["b"]
            assert told((await stack.destroy()).changes) == [("delete", "b")]
            assert shelf.items() == {}
            await stack.remove()
        assert not list(shelf.state.rglob("state/**/one.json"))

    asyncio.run(play())


def test_a_change_says_which_property_and_whether_it_replaces(shelf):
    """A plan shows values before and after; a replacement is one change of it."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", colour="red", size=1))
            (changed,) = await stack.preview(items("a", colour="blue", size=1))
            assert changed.action is Action.UPDATE
            (colour,) = changed.properties
            assert (colour.path, colour.before, colour.after) == ("colour", "red", "blue")
            assert not colour.replaces
            (replaced,) = await stack.preview(items("a", colour="red", size=2))
            assert replaced.action is Action.REPLACE
            assert [(one.path, one.replaces) for one in replaced.properties] == [("size", True)]
            before = set(shelf.items())
            outcome = await stack.up(items("a", colour="red", size=2))
            assert told(outcome.changes) == [("create", "a"), ("delete", "a")]
            assert all(one.is_replacement for one in outcome.changes)
            assert len(shelf.items()) == 1
            assert not before & set(shelf.items())

    asyncio.run(play())


def test_outputs_of_one_resource_are_inputs_of_another(shelf):
    """The second one is created after the first."""
    program = Program(
        (
            Resource("pulumi:providers:shelf", "shelf"),
            Resource(ITEM, "a", {"size": 1}, provider="shelf"),
            Resource(
                ITEM,
                "b",
                {"of": output_of("a"), "at": [output_of("a", "address")]},
                provider="shelf",
            ),
        )
    )

    async def play():
        async with shelf.open() as stack:
            await apply(stack, program)

    asyncio.run(play())
    by_name = {item["name"]: (key, item["properties"]) for key, item in shelf.items().items()}
    first = by_name["a"][0]
    assert by_name["b"][1] == {"of": first, "at": [f"address-of-{first}"]}


def test_up_refuses_a_create_that_was_not_planned(shelf):
    """The item left the state after the preview; the plan has no create for it."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a"))
            await stack.preview(items("a"))
            state = await stack.export_state()
            kept = [one for one in state["resources"] if one["type"] != ITEM]
            await stack.import_state({**state, "resources": kept})
            (await stack.up(items("a"))).require()

    _refused(shelf, play)


def test_up_refuses_a_replacement_that_was_not_planned(shelf):
    """Another change gave the item a property after the preview, so that it would be replaced."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", size=1))
            await stack.preview(items("a", size=1))
            state = copy.deepcopy(await stack.export_state())
            (item,) = [one for one in state["resources"] if one["type"] == ITEM]
            item["inputs"]["size"] = 2
            await stack.import_state(state)
            (await stack.up(items("a", size=1))).require()

    _refused(shelf, play)


def test_up_refuses_a_delete_that_was_not_planned(shelf):
    """Another change added an item to the state after the preview."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", "b"))
            full = await stack.export_state()
            part = [one for one in full["resources"] if not one["urn"].endswith("::b")]
            await stack.import_state({**full, "resources": part})
            await stack.preview(items("a"))
            await stack.import_state(full)
            (await stack.up(items("a"))).require()

    _refused(shelf, play)


def _refused(shelf, play):
    async def watch():
        with pytest.raises(PermanentError, match="not the one that was previewed") as refused:
            await play()
        assert "plan" in refused.value.advice

    asyncio.run(watch())
    names = shelf.names()
    assert names, "the items were deleted"
    assert len(names) == len(set(names)), "one was created twice"


def test_up_refuses_a_program_that_was_not_previewed(shelf):
    """A plan belongs to one program, and is stale after the next `up`."""

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))
            with pytest.raises(PermanentError, match="not the one that was previewed"):
                await stack.up(items("a", "b"))
            await apply(stack, items("b"))
            with pytest.raises(PermanentError, match="not the one that was previewed"):
                await stack.up(items("a"))

    asyncio.run(play())
    assert shelf.names() == ["b"]


def test_a_new_stack_needs_no_preview(shelf):
    """Its state is empty, so all is created; from then on each `up` has one."""

    async def play():
        async with shelf.open() as stack:
            (await stack.up(items("a"))).require()
            with pytest.raises(PermanentError, match="not the one that was previewed"):
                await stack.up(items("a"))
        async with shelf.open() as stack:
            with pytest.raises(PermanentError, match="not the one that was previewed"):
                await stack.up(items("a", "b"))

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_refresh_finds_what_is_gone_and_what_differs(shelf):
    """Then the next preview creates the one again and changes the other back."""

    async def play():
        async with shelf.open() as stack:
            await apply(stack, items("a", "b", colour="red"))
            by_name = {item["name"]: key for key, item in shelf.items().items()}
            shelf.remove(by_name["a"])
            shelf.change(by_name["b"], colour="green")
            found = await stack.refresh(items("a", "b", colour="red"))
            assert told(found) == [("delete", "a"), ("update", "b")]
            planned = await stack.preview(items("a", "b", colour="red"))
            assert told(planned) == [("create", "a"), ("update", "b")]

    asyncio.run(play())


def test_one_failed_create_leaves_the_others(shelf):
    """With `continue_on_error` the outcome names what failed, and what exists."""
    shelf.control(fail={"b": "InsufficientInstanceCapacity: we have no capacity for this type"})

    async def play():
        async with shelf.open() as stack:
            outcome = await apply(stack, items("a", "b", "c"), continue_on_error=True)
            (failed,) = outcome.failures
            assert (failed.kind, failed.where) == ("no-capacity", "b")
            assert told(outcome.changes) == [("create", "a"), ("create", "c")]
            shelf.control()
            assert told((await apply(stack, items("a", "b", "c"))).changes) == [("create", "b")]

    asyncio.run(play())
    assert shelf.names() == ["a", "b", "c"]


def test_a_protected_resource_is_not_deleted(shelf):
    """Neither by a program without it nor by a destroy."""
    program = items("a")
    held = [dataclasses.replace(one, protect=not one.is_provider) for one in program.resources]
    protected = Program(tuple(held))

    async def play():
        async with shelf.open() as stack:
            await apply(stack, protected)
            with pytest.raises(PermanentError, match="protected from deletion"):
                await apply(stack, items())
            with pytest.raises(PermanentError, match="protected from deletion"):
                (await stack.destroy()).require()

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_secret_is_nowhere_in_clear(shelf):
    """Not in changes, in the exported state, or in any file of the stack."""
    first, second = "correct-horse-battery", "staple-of-the-horse"

    async def play():
        async with shelf.open() as stack:
            seen: list[Change] = []
            await apply(stack, items("a", key=secret(first)), on_change=seen.append)
            (planned,) = await stack.preview(items("a", key=secret(second)))
            seen.append(planned)
            (key,) = planned.properties
            assert key.before == key.after == HIDDEN
            deployment = await stack.export_state()
            texts = [str(seen), str(deployment), str(resources_of(deployment))]
            texts += [path.read_text(errors="replace") for path in files()]
            assert not [text for text in texts if first in text or second in text]
            (await stack.up(items("a", key=secret(second)))).require()

    def files() -> list[Path]:
        return [path for path in shelf.state.rglob("*") if path.is_file()]

    asyncio.run(play())
    (item,) = shelf.items().values()
    assert second in str(item), "the plugin gets the value itself"
    assert stat.S_IMODE(shelf.passphrase.stat().st_mode) == 0o600
    assert shelf.state not in shelf.passphrase.parents


def test_a_second_runner_of_a_stack_is_refused(shelf):
    """It names the process; another stack is free."""

    async def play():
        async with shelf.open() as stack:
            with pytest.raises(StackLocked, match=f"another process .*pid {stack.pid}"):
                async with shelf.open():
                    pass
            async with shelf.open("two") as other:
                await other.preview(items("a"))
        async with shelf.open() as stack:
            await stack.preview(items("a"))

    asyncio.run(play())


def test_an_interrupt_keeps_what_was_created(shelf):
    """Calls that have begun finish, no more begin, and nothing is pending afterwards."""
    shelf.control(before_create_seconds=1)

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))
            began = asyncio.Event()
            up = asyncio.create_task(stack.up(items("a"), on_change=lambda _: began.set()))
            await began.wait()
            await stack.interrupt()
            await up
            assert not (await stack.export_state()).get("pending_operations")
            assert await stack.preview(items("a")) == ()

    asyncio.run(play())
    assert shelf.names() == ["a"]


def test_a_killed_cli_is_an_interruption(shelf):
    """The change is worth another try, and the message names the signal."""
    shelf.control(before_create_seconds=30, fail={"b": "InsufficientInstanceCapacity: none"})

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a", "b"))
            refused = asyncio.Event()

            def look(change: Change) -> None:
                if change.phase is Phase.FAILED:
                    refused.set()

            up = asyncio.create_task(
                stack.up(items("a", "b"), on_change=look, continue_on_error=True)
            )
            await refused.wait()
            processes.send(processes.children(stack.pid), signal.SIGKILL)
            with pytest.raises(TemporaryError, match="the Pulumi CLI was killed by signal 9"):
                await up

    asyncio.run(play())


@pytest.mark.parametrize(
    ("missing", "message"),
    [("pulumi", "Pulumi CLI is not installed"), ("pulumi-resource-shelf", "plugin shelf is not")],
)
def test_what_is_not_installed_is_named(shelf, missing, message):
    """In one sentence, with what to run."""
    found = [
        one
        for one in shelf.environment["PATH"].split(":")
        if not (Path(one) / missing).exists()
    ]  # fmt: skip
    shelf.environment["PATH"] = ":".join(found)

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))

    with pytest.raises(PermanentError, match=message) as refused:
        asyncio.run(play())
    assert "install" in refused.value.advice


def test_credentials_that_are_refused_are_named(shelf):
    """The words of the cloud follow ours, and no traceback."""
    shelf.control(configure="InvalidClientTokenId: The security token is invalid")

    async def play():
        async with shelf.open() as stack:
            await stack.preview(items("a"))

    with pytest.raises(PermanentError, match="refuses the credentials") as refused:
        asyncio.run(play())
    assert "Traceback" not in str(refused.value)
    assert "security token is invalid" in str(refused.value)

"""Calls for hosts of one stack are few changes of it."""

import asyncio

import pytest

from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.pulumi.aws import gathered_changes
from fleetform.providers.pulumi.aws.gathered_changes import GatheredChanges


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(gathered_changes, "GATHER_SECONDS", 0)


def request(name, stack="gpus-first"):
    return InstanceRequest(
        uid=name, name=name, fleet="gpus", declared={}, endpoint={"stack": stack}
    )


class Changes:
    """Records which hosts each change has; the first change goes on until it is let end."""

    def __init__(self):
        self.made = []
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, requests, _report):
        self.made.append([one.uid for one in requests])
        self.has_begun.set()
        await self.may_end.wait()
        return {one.uid: one.uid for one in requests}


def test_calls_during_a_change_are_the_next_one_together():
    """A host that leaves a moment later does not wait for each that left before it."""

    async def play():
        changes = Changes()
        gathered = GatheredChanges(changes)
        calls = [asyncio.create_task(gathered(request("first"), print))]
        await changes.has_begun.wait()
        for name in ("second", "third"):
            calls.append(asyncio.create_task(gathered(request(name), print)))
            # Each comes when the task of an earlier one already waits for the change.
            for _ in range(5):
                await asyncio.sleep(0)
        changes.may_end.set()
        return await asyncio.gather(*calls), changes.made

    results, made = asyncio.run(play())
    assert results == ["first", "second", "third"]
    assert made == [["first"], ["second", "third"]]


def test_stacks_change_side_by_side():
    """A change of one stack delays none of another."""

    async def play():
        changes = Changes()
        gathered = GatheredChanges(changes)
        calls = [asyncio.create_task(gathered(request("first"), print))]
        await changes.has_begun.wait()
        changes.has_begun.clear()
        calls.append(asyncio.create_task(gathered(request("other", "cpus-first"), print)))
        await changes.has_begun.wait()
        made = list(changes.made)
        changes.may_end.set()
        await asyncio.gather(*calls)
        return made

    assert asyncio.run(play()) == [["first"], ["other"]]


def test_a_change_that_failed_is_followed_by_the_next_one():
    """Each caller of a change gets its error, and the stack can be changed again."""

    async def play():
        made = []

        async def change(requests, _report):
            made.append([one.uid for one in requests])
            if len(made) == 1:
                raise TemporaryError("the cloud does not answer")
            return {one.uid: one.uid for one in requests}

        gathered = GatheredChanges(change)
        with pytest.raises(TemporaryError, match="does not answer"):
            await gathered(request("first"), print)
        return await gathered(request("first"), print), made

    assert asyncio.run(play()) == ("first", [["first"], ["first"]])

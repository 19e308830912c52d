"""What became of operations that were cut off: properties over any state and any inventory."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.providers.contract.errors import AnswerUnknown
from fleetform.providers.pulumi.engine.program import Program, Resource, output_of, secret
from fleetform.providers.pulumi.recovery.existence import LISTED, compare_existence
from fleetform.providers.pulumi.recovery.inventory import Existing
from fleetform.providers.pulumi.recovery.pending import settle, waits_for
from fleetform.providers.pulumi.recovery.rebuild import providers_only, rebuild
from fleetform.providers.pulumi.recovery.recover import listed, recover, require_listed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TYPE = "aws:ec2/instance:Instance"
STACK = {"urn": "urn:pulumi:s::fleetform::pulumi:pulumi:Stack::s", "type": "pulumi:pulumi:Stack"}


def entry(name, new_id="", kind=TYPE):
    value = {
        "urn": f"urn:pulumi:s::fleetform::{kind}::{name}",
        "type": kind,
        "inputs": {"tags": {"fleetform:uid": name}},
    }
    return {**value, "id": new_id} if new_id else value


def existing(name, new_id, kind=TYPE):
    return Existing(kind, new_id, {"fleetform:uid": name})


@st.composite
def cut_off(draw):
    """Draw a state with operations, and an inventory of things that the state has or lacks."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8))
    resources, operations, things = [STACK], [], []
    for name in names:
        role = draw(st.sampled_from(["there", "create", "replace", "delete", "update"]))
        if role != "create":
            resources.append(entry(name, f"{name}-0"))
            if draw(st.booleans()):
                things.append(existing(name, f"{name}-0"))
        if role in {"create", "replace"}:
            operations.append({"type": "creating", "resource": entry(name)})
            copies = draw(st.integers(0, 3))
            things += [existing(name, f"{name}-{number}") for number in range(1, copies + 1)]
        elif role != "there":
            kind = "deleting" if role == "delete" else "updating"
            operations.append({"type": kind, "resource": entry(name, f"{name}-0")})
    things += [existing(f"x{number}", f"x{number}") for number in range(draw(st.integers(0, 2)))]
    state = {"manifest": {"m": 1}, "resources": resources, "pending_operations": operations}
    return state, draw(st.permutations(things))


@given(cut_off())
def test_each_operation_is_settled_once(drawn):
    """And none is left; the rest of the state and the given values stay."""
    state, things = drawn
    before = copy.deepcopy(state)
    settled = settle(state, things)
    assert state == before
    assert settled.deployment["pending_operations"] == []
    assert settled.deployment["manifest"] == {"m": 1}
    names = (*settled.adopted, *settled.dropped, *settled.removed, *settled.kept)
    wanted = [one["resource"]["urn"].rpartition("::")[2] for one in state["pending_operations"]]
    assert sorted(names) == sorted(wanted)


@given(cut_off())
def test_nothing_is_lost_or_doubled(drawn):
    """Each thing of a resource is in the state once, or is an orphan of it; no id is there twice."""
    state, things = drawn
    settled = settle(state, things)
    ids = [one["id"] for one in settled.deployment["resources"] if "id" in one]
    assert max(Counter(ids).values(), default=1) == 1
    pending = {one["resource"]["inputs"]["tags"]["fleetform:uid"] for one in state["pending_operations"]}  # fmt: skip
    for one in things:
        if one.tags["fleetform:uid"] in pending:
            assert (one.id in ids) != (one in settled.orphans)
    live = [one["urn"] for one in settled.deployment["resources"] if not one.get("delete")]
    assert len(live) == len(set(live)), "a resource has two entries that are not being deleted"


@given(cut_off())
def test_the_state_loses_only_what_is_gone(drawn):
    """An entry leaves the state if its delete was pending and the inventory does not show it."""
    state, things = drawn
    settled = settle(state, things)
    after = {one.get("id") for one in settled.deployment["resources"]}
    shown = {one.id for one in things}
    deleting = {
        one["resource"]["id"] for one in state["pending_operations"] if one["type"] == "deleting"
    }
    gone = {one["id"] for one in state["resources"] if "id" in one} - after
    assert gone == deleting - shown


@given(cut_off())
def test_a_second_settlement_has_nothing_to_do(drawn):
    """Recovery that is cut off itself is repeated."""
    state, things = drawn
    settled = settle(state, things)
    again = settle(settled.deployment, things)
    assert again.deployment == settled.deployment
    assert waits_for(settled.deployment, things) == ()


@given(cut_off())
def test_a_wait_is_for_what_would_be_dropped(drawn):
    """Those creates and no others."""
    state, things = drawn
    assert sorted(waits_for(state, things)) == sorted(settle(state, things).dropped)


class Ended:
    """A stack with one pending create, and the inventory, which lists its instance as terminated and no other."""

    def __init__(self):
        self.state = {
            "resources": [],
            "pending_operations": [{"type": "creating", "resource": entry("a")}],
        }

    async def export_state(self):
        return self.state

    async def import_state(self, state):
        self.state = state

    async def refresh(self, program):
        pass

    async def existing(self):
        return []

    async def ended(self):
        return [existing("a", "i-1")]


def test_nothing_is_waited_for_that_has_ended():
    """A terminated instance proves that its create was done: its place is free at once, not after ten minutes."""
    one = Ended()

    async def story():
        async with asyncio.timeout(60):
            settlement = await recover(one, PROGRAM, one, look_seconds=LISTED.total_seconds())
            assert settlement.dropped == ("a",)
            assert await listed(one, frozenset("a"), look_seconds=LISTED.total_seconds()) == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("seconds", "uid", "is_known"),
    [(0, "a", True), (0, "b", False), (599, "b", False), (600, "b", True)],
    ids=["it has ended", "it is missing", "it is missing for long", "it was not created"],
)
def test_an_answer_is_missing_until_a_moment(seconds, uid, is_known):
    """The wait begins at `since`, the end of the last process that could create the host, and no look begins it again."""
    since = datetime(2026, 11, 28, 6, 0, tzinfo=UTC)
    now = since + timedelta(seconds=seconds)
    look = require_listed(Ended(), {uid: "gpus-0"}, since=since, now=now)
    if is_known:
        asyncio.run(look)
        return
    with pytest.raises(
        AnswerUnknown, match=r"gpus-0 was cut off: waiting until 2026-11-28T06:10:00Z"
    ):
        asyncio.run(look)


def test_the_first_of_several_is_adopted():
    """The inventory says which one that is."""
    state = {"resources": [], "pending_operations": [{"type": "creating", "resource": entry("a")}]}
    settled = settle(state, [existing("a", "i-2"), existing("a", "i-1")])
    assert settled.deployment["resources"][0]["id"] == "i-2"
    assert [one.id for one in settled.orphans] == ["i-1"]


def test_a_thing_of_another_type_is_not_adopted():
    """An address has the uid of its instance."""
    state = {"resources": [], "pending_operations": [{"type": "creating", "resource": entry("a")}]}
    settled = settle(state, [existing("a", "eip-1", kind="aws:ec2/eip:Eip")])
    assert (settled.adopted, settled.dropped) == ((), ("a",))


def test_a_provider_is_dropped_at_once():
    """It exists in the state alone."""
    provider = {**entry("aws", kind="pulumi:providers:aws")}
    state = {"resources": [], "pending_operations": [{"type": "creating", "resource": provider}]}
    assert waits_for(state, []) == ()
    assert settle(state, []).dropped == ("aws",)


def test_a_resource_without_a_uid_is_not_taken_as_deleted():
    """The inventory lists none of these, so a refresh asks the cloud."""
    attachment = {**entry("a", "att-1"), "inputs": {}}
    operations = [{"type": "deleting", "resource": attachment}]
    state = {"resources": [attachment], "pending_operations": operations}
    settled = settle(state, [])
    assert settled.kept == ("a",)
    assert settled.deployment["resources"] == [attachment]


PROVIDER = Resource("pulumi:providers:aws", "aws", {"region": "r"})
PROGRAM = Program(
    (
        PROVIDER,
        Resource("aws:x:Group", "g", {"tags": {"fleetform:uid": "g"}}, provider="aws"),
        Resource(
            TYPE,
            "a",
            {
                "tags": {"fleetform:uid": "a"},
                "groups": [output_of("g"), output_of("g", "name")],
                "userData": secret("x"),
            },
            provider="aws",
            depends_on=("g",),
            protect=True,
        ),
        Resource(TYPE, "b", {"tags": {"fleetform:uid": "b"}}, provider="aws"),
    )
)


def test_a_state_is_rebuilt_from_what_exists():
    """With ids filled in, and without secrets and values that only the cloud knows."""
    provider = "urn:pulumi:s::fleetform::pulumi:providers:aws::aws"
    empty = {"resources": [STACK, {"urn": provider, "type": "pulumi:providers:aws", "id": "p-1"}]}
    things = [existing("a", "i-1"), existing("a", "i-2"), existing("g", "sg-1", "aws:x:Group")]
    rebuilt = rebuild("s", empty, PROGRAM, things)
    assert (rebuilt.adopted, rebuilt.missing) == (("g", "a"), ("b",))
    assert [one.id for one in rebuilt.orphans] == ["i-2"]
    group, instance = rebuilt.deployment["resources"][2:]
    assert instance == {
        "urn": f"urn:pulumi:s::fleetform::{TYPE}::a",
        "type": TYPE,
        "custom": True,
        "id": "i-1",
        "inputs": {"tags": {"fleetform:uid": "a"}, "groups": ["sg-1"]},
        "outputs": {},
        "protect": True,
        "parent": STACK["urn"],
        "provider": f"{provider}::p-1",
        "dependencies": [group["urn"]],
    }
    assert rebuild("s", rebuilt.deployment, PROGRAM, things).adopted == ()
    assert providers_only(PROGRAM).resources == (PROVIDER,)


def test_one_inventory_says_which_stacks_need_a_refresh():
    """And what exists twice, or is in no state; the same uid of another type is another thing."""
    states = {
        "one": {"resources": [STACK, entry("a", "i-1"), entry("b", "i-2")]},
        "two": {"resources": [entry("c", "i-3")]},
        "empty": {},
    }
    things = [
        existing("a", "i-1"),
        existing("a", "i-9"),
        existing("a", "eip-1", "aws:ec2/eip:Eip"),
        existing("c", "i-3"),
        existing("x", "i-8"),
    ]
    found = compare_existence(states, things, now=NOW)
    assert found.gone == {"one": ("b",)}
    assert [one.id for one in found.doubled] == ["i-9"]
    assert [one.id for one in found.unknown] == ["eip-1", "i-8"]


def test_what_was_created_a_moment_ago_may_not_be_listed_yet():
    """It is gone only if it is missing in a list that must have it."""
    young = {**entry("a", "i-1"), "created": (NOW - LISTED + timedelta(seconds=1)).isoformat()}
    old = {**entry("b", "i-2"), "created": (NOW - LISTED).isoformat()}
    found = compare_existence({"one": {"resources": [young, old]}}, [], now=NOW)
    assert found.gone == {"one": ("b",)}


@given(cut_off())
def test_after_recovery_the_inventory_and_the_state_agree(drawn):
    """Each orphan is listed as doubled, and nothing that was adopted is unknown."""
    state, things = drawn
    settled = settle(state, things)
    found = compare_existence({"s": settled.deployment}, things, now=NOW)
    assert [one for one in settled.orphans if one not in found.doubled] == []
    adopted = set(settled.adopted)
    assert not adopted & {one.tags["fleetform:uid"] for one in found.unknown}

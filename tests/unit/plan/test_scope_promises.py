"""What holds for every tree, every ledger and every part of a plan that somebody asks for."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fleetform.checker import check
from fleetform.model.live import Live
from fleetform.model.plan import Permissions, Plan, Scope
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import Desired, ResourceKey
from unit.plan.test_promises import situations, thorough
from unit.plan.trees import NOW_MS, carry_out

WHOLE = Scope()
ALL = Permissions(allow_destroy=True, allow_restart=True, allow_deletes=1000)

Situation = tuple[Desired, Live, Permissions]


@st.composite
def scopes(draw: st.DrawFn, desired: Desired, live: Live) -> Scope:
    """Addresses of what there is or shall be, of kinds, of sweeps; as targets, exclusions, or both."""
    keys = sorted({*desired.resources, *live.resources})
    addresses = ["run/*", "volume/*", "fleet/*", "run/s", "s[lr=1]", *map(str, keys)]
    some = st.lists(st.sampled_from(addresses), max_size=3, unique=True)
    return Scope(targets=tuple(draw(some)), excludes=tuple(draw(some)))


@st.composite
def parts(draw: st.DrawFn) -> tuple[Situation, Scope]:
    situation = draw(situations())
    return situation, draw(scopes(situation[0], situation[1]))


def made(situation: Situation, scope: Scope = WHOLE) -> Plan:
    desired, live, permissions = situation
    return make_plan(desired, live, permissions=permissions, scope=scope, now_ms=NOW_MS)


@thorough
@given(parts())
def test_a_part_and_the_rest_are_the_whole(given_: tuple[Situation, Scope]) -> None:
    """What is changed, held or deferred is, each once, what the whole plan changes or holds."""
    situation, scope = given_
    whole, part = made(situation), made(situation, scope)
    keys = Counter(one.key for one in part.changes)
    keys.update(one.change.key for one in (*part.held, *part.deferred))
    expected = {one.key for one in whole.changes} | {one.change.key for one in whole.held}
    assert set(keys) == expected
    assert max(keys.values(), default=1) == 1


@thorough
@given(parts())
def test_a_second_reader_finds_nothing_in_a_part(given_: tuple[Situation, Scope]) -> None:
    """No part of a plan breaks an invariant either."""
    (desired, live, permissions), scope = given_
    part = made((desired, live, permissions), scope)
    violations = check(part, desired, live, permissions, scope)
    assert [one.sentence for one in violations] == []


@thorough
@given(parts())
def test_a_part_first_changes_nothing_in_the_end(given_: tuple[Situation, Scope]) -> None:
    """A part and then the whole end where the whole ends, and have started the same runs."""
    (desired, live, _), scope = given_
    after, started = carry_out(made((desired, live, ALL), scope), live)
    by_parts, more = carried_to_the_end(desired, after)
    at_once, others = carried_to_the_end(desired, live)
    assert meaning(by_parts) == meaning(at_once)
    assert Counter((*started, *more)) == Counter(others)


def carried_to_the_end(desired: Desired, live: Live) -> tuple[Live, list[str]]:
    """Plan and carry out until nothing is left; returns the names of what was started as well."""
    started: list[str] = []
    for _ in range(12):
        plan = made((desired, live, ALL))
        if plan.is_empty:
            return live, started
        live, names = carry_out(plan, live)
        started += names
    raise AssertionError("a dozen plans were not enough")


def meaning(live: Live) -> dict[ResourceKey, tuple[str, bool, bool]]:
    """What is there, without the numbers that tell by which way it came."""
    return {key: (one.digest, one.archived, one.protected) for key, one in live.resources.items()}

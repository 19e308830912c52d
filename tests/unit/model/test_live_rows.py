"""A plan of rows that were read only as far as they differ is the plan of all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from fleetform.checker import check
from fleetform.model.live import Live, LiveResource, Rows
from fleetform.model.plan import WHOLE, Permissions, Scope
from fleetform.model.run_state import NO_EVIDENCE, RunState
from fleetform.plan.planner import plan
from fleetform.spec.desired import Declared, Desired, ResourceKey, Table, digests_of
from unit.plan.test_promises import situations
from unit.plan.trees import NOW_MS, declare, fleet, ledger, row, task, tree


def is_quiet(one: LiveResource) -> bool:
    """What the ledger's statement asks of a row that is read no further than its digest."""
    if one.archived or one.operation:
        return False
    if one.key.kind != "run":
        return True
    run = one.run
    return (
        run is not None
        and run.state is RunState.DONE
        and run.cause != NO_EVIDENCE
        and not run.stale
    )


def lean(live: Live, desired: Desired) -> tuple[Live, list[str]]:
    """The same as a command reads it, and a list that says whether the rest was asked for."""
    asked: list[str] = []

    def read_all() -> dict:
        asked.append("all")
        return dict(live.resources)

    known = digests_of(desired.resources)
    unchanged = {
        key: one.digest
        for key, one in live.resources.items()
        if is_quiet(one) and known.get(key) == one.digest
    }
    changed = {key: one for key, one in live.resources.items() if key not in unchanged}
    return replace(live, resources=Rows(unchanged, changed, read_all)), asked


def as_table(desired: Desired) -> Desired:
    resources = list(desired.resources.values())
    digests = {one.key: one.digest for one in resources}
    return replace(desired, resources=Table(digests, resources.__getitem__))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(situations())
def test_what_is_not_read_makes_no_difference(
    situation: tuple[Desired, Live, Permissions],
) -> None:
    """Changes, holds, predicates, counts and violations are the same, whatever is there."""
    desired, live, permissions = situation
    expected = plan(desired, live, permissions=permissions, now_ms=NOW_MS)
    less, _ = lean(live, desired)
    made = plan(as_table(desired), less, permissions=permissions, now_ms=NOW_MS)
    assert made == expected
    assert check(made, as_table(desired), less, permissions) == ()


@pytest.mark.parametrize(
    ("changed", "scope"),
    [
        ({}, WHOLE),
        ({"description": "another"}, WHOLE),
        ({"path": "elsewhere"}, WHOLE),
        ({"path": "elsewhere"}, Scope(targets=("volume/v3",))),
        ({"path": "elsewhere"}, Scope(excludes=("volume/v3",))),
        ({}, Scope(targets=("run/r1",))),
    ],
)
def test_what_is_as_declared_is_never_read(changed: dict[str, str], scope: Scope) -> None:
    """A plan of one change among many asks for no row, and for no document but its own and its fleet's."""
    before = [fleet("here")]
    before += [_volume(number) for number in range(5)]
    before += [task(f"r{number}") for number in range(5)]
    after = [_volume(3, **changed) if one.key.name == "v3" else one for one in before]
    live = ledger(*(row(one, RunState.DONE if one.key.kind == "run" else None) for one in before))
    desired, made = counting(tree(*after))
    less, asked = lean(live, desired)
    planned = plan(desired, less, permissions=ALL, scope=scope, now_ms=NOW_MS)
    assert check(planned, desired, less, ALL, scope) == ()
    assert plan(tree(*after), live, permissions=ALL, scope=scope, now_ms=NOW_MS) == planned
    assert asked == []
    assert {key.name for key in made} <= ({"v3"} if changed else set()) | {"r1", "here"}


ALL = Permissions(allow_destroy=True)


def _volume(number: int, **fields: str) -> Declared:
    name = f"v{number}"
    return declare("volume", name, {"name": name, "fleet": "here", "path": name, **fields})


def counting(desired: Desired) -> tuple[Desired, list[ResourceKey]]:
    """The same as a table, and the keys of what was made of it."""
    resources = list(desired.resources.values())
    made: list[ResourceKey] = []

    def make(position: int) -> Declared:
        made.append(resources[position].key)
        return resources[position]

    digests = {one.key: one.digest for one in resources}
    return replace(desired, resources=Table(digests, make)), made


def test_what_is_asked_for_anew_is_read() -> None:
    """A row that is as declared is a whole row again when a scope means it."""
    volume = declare("volume", "data", {"name": "data", "fleet": "local", "path": "data"})
    desired = as_table(tree(volume))
    scope = Scope(replaces=("volume/data",))
    live = ledger(row(volume))
    less, asked = lean(live, desired)
    made = plan(desired, less, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert made == plan(desired, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert asked == ["all"]

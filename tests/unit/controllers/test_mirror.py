"""Parts that are read one after another make the same copy as one reading of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fleetform.controllers.mirror import Mirror
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import RunUid
from fleetform.model.scheduler_state import SchedulerState

PLACES = st.integers(0, 5)
CHANGES = st.lists(st.dictionaries(PLACES, st.none() | st.integers(1, 9)), max_size=8)
"""The next generation of the instance of each place that changes; None: it is terminated."""


def instance(place: int, generation: int) -> Instance:
    return Instance(
        uid=f"uid-{place}",
        name=f"host-{place}",
        fleet=f"fleet-{place % 2}",
        number=place,
        state=InstanceState.READY,
        generation=generation,
    )


def book(generations: Mapping[int, int]) -> SchedulerState:
    """Return a reading of these instances in the order of the ledger."""
    instances = [instance(place, generation) for place, generation in generations.items()]
    return SchedulerState(
        serial=1,
        runs={},
        attempts={},
        lingering=(),
        instances=tuple(sorted(instances, key=lambda one: (one.fleet, one.number))),
        allocations=(),
        outcomes={},
    )


@given(st.dictionaries(PLACES, st.integers(1, 9)), CHANGES)
def test_instances_that_are_read_by_parts_are_those_of_a_whole_reading(
    first: dict[int, int], changes: list[dict[int, int | None]]
) -> None:
    """Also their order is the same, where some are new or terminated."""
    now = dict(first)
    mirror = Mirror()
    mirror.replace(book(now))
    for change in changes:
        for place, generation in change.items():
            now.pop(place, None)
            if generation is not None:
                now[place] = generation
        part = {place: now[place] for place in change if place in now}
        mirror.merge((), [f"uid-{place}" for place in change], book(part))
        assert mirror.instances == book(now).instances


def test_a_port_is_free_when_a_run_is_read_again_without_it() -> None:
    """And those of runs that are not read stay in use."""
    mirror, first, second = Mirror(), RunUid("first"), RunUid("second")
    mirror.replace(replace(book({}), master_ports={first: 20_000, second: 20_001}))
    mirror.merge((first,), (), book({}))
    assert mirror.as_scheduler_state().master_ports == {second: 20_001}
    mirror.replace(book({}))
    assert mirror.as_scheduler_state().master_ports == {}

"""Which runs wait for a host that is silent, and which do not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle.progress import kept_by_silence
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import (
    Attempt,
    AttemptState,
    Dependency,
    GpuRequirement,
    Job,
    Requirement,
    Run,
    RunState,
    RunUid,
    Template,
)

GONE = Instance("gone", "a-0", "a", 0, InstanceState.UNREACHABLE)
WELL = Instance("well", "b-0", "b", 0, InstanceState.READY)


@dataclass
class Rows:
    runs: dict[RunUid, Run] = field(default_factory=dict)
    attempts: dict[RunUid, Attempt] = field(default_factory=dict)
    instances: tuple[Instance, ...] = (GONE, WELL)

    def run(
        self, name: str, state: RunState, *, on: tuple[str, ...] = (), **template: object
    ) -> None:
        uid = RunUid(name)
        self.runs[uid] = Run(uid, name, Template(name, "task", ("true",), **template), state, 1)
        jobs = tuple(
            Job(f"{name}-{rank}", JobKey(name, 1, rank), JobState.RUNNING, 1, instance_uid=place)
            for rank, place in enumerate(on)
        )
        if on:
            self.attempts[uid] = Attempt(uid, 1, AttemptState.RUNNING, jobs)


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_nothing_waits_where_all_answer(rows: Rows) -> None:
    """However long it takes."""
    rows.instances = (WELL,)
    rows.run("one", RunState.SUBMITTED)
    assert kept_by_silence(rows) == {}


def test_what_is_on_a_silent_host_waits_for_it(rows: Rows) -> None:
    """A gang for all of its hosts that are silent, and for no other."""
    rows.run("one", RunState.UNKNOWN, on=("gone",))
    rows.run("two", RunState.RUNNING, on=("well",))
    rows.run("gang", RunState.UNKNOWN, on=("well", "gone"))
    assert kept_by_silence(rows) == {"one": ("a-0",), "gang": ("a-0",)}


def test_what_could_run_elsewhere_waits_for_nobody(rows: Rows) -> None:
    """Only a run whose fleets have no other host is kept by this one."""
    rows.run("bound", RunState.SUBMITTED, fleets=("a",))
    rows.run("free", RunState.SUBMITTED)
    rows.run("other", RunState.SUBMITTED, fleets=("b",))
    assert kept_by_silence(rows) == {"bound": ("a-0",)}


@pytest.mark.parametrize(
    "needs",
    [
        Requirement(cpu_min_millicores=8000),
        Requirement(memory_min_bytes=16 << 30),
        Requirement(gpu=GpuRequirement(count_min=1)),
    ],
    ids=str,
)
def test_a_host_that_is_too_small_takes_nothing(rows: Rows, needs: Requirement) -> None:
    """A run that fits on no host that answers waits for the silent one, whatever its fleet."""
    small = replace(WELL, cpu_millicores=4000, memory_bytes=8 << 30)
    rows.instances = (GONE, small)
    rows.run("large", RunState.SUBMITTED, requirement=needs)
    rows.run("small", RunState.SUBMITTED, requirement=Requirement(cpu_min_millicores=4000))
    assert kept_by_silence(rows) == {"large": ("a-0",)}
    rows.instances = (GONE, small, replace(WELL, uid="new", state=InstanceState.PROVISIONING))
    assert kept_by_silence(rows) == {}


@pytest.mark.parametrize(
    "state", [InstanceState.READY, InstanceState.PROVISIONING, InstanceState.SUSPECT]
)
def test_a_host_that_comes_is_waited_for(rows: Rows, state: InstanceState) -> None:
    """One that is being made, or rests for some minutes, is not silent."""
    rows.instances = (GONE, Instance("new", "a-1", "a", 1, state))
    rows.run("bound", RunState.SUBMITTED, fleets=("a",))
    assert kept_by_silence(rows) == {}


def test_what_depends_on_a_kept_run_is_kept(rows: Rows) -> None:
    """Through a whole chain, and by the name of a sweep; what depends on others is not."""
    rows.run("s[1]", RunState.UNKNOWN, on=("gone",), parent="s")
    rows.run("next", RunState.PENDING, depends_on=(Dependency("s"),))
    rows.run("last", RunState.PENDING, depends_on=(Dependency("next"),))
    rows.run("well", RunState.RUNNING, on=("well",))
    rows.run("after", RunState.PENDING, depends_on=(Dependency("well"),))
    assert set(kept_by_silence(rows)) == {"s[1]", "next", "last"}

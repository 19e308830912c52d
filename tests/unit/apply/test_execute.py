from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from fleetform.agents.protocol.messages import Reply
from fleetform.app.clock import RandomIds
from fleetform.apply.execute import Outcome, execute
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import Plan, Step
from fleetform.model.ports import Ledger
from fleetform.model.run import Run
from fleetform.plan.serialize import dump
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.spec.desired import Declared
from fleetform.store.opening import ledger_in_memory
from simulation.controller import Silent, VirtualClock
from simulation.loop import VirtualLoop, run
from unit.plan.trees import UID, fleet, planned, task, tree, volume

T = TypeVar("T")


class Host:
    """Answers what a step asks; the paths in `broken` fail."""

    def __init__(self, world: World) -> None:
        self._world = world

    def volume_path(self, path: str) -> str:
        return f"/volumes/{path}"

    async def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, *, take: str = "any"
    ) -> Reply:
        self._world.made.append((operation_uid, volume_uid, path))
        if path in self._world.full:
            return Reply(1, False, "no_space", "no space left on the host")
        return Reply(1, True)

    async def remove_volume(
        self, operation_uid: str, volume_uid: str, path: str, *, delete_data: bool = False
    ) -> Reply:
        return Reply(1, True)

    async def snapshot_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, into: str
    ) -> Reply:
        return Reply(1, True, body={"places": [into, f"{into}-{operation_uid[:12]}"]})


@dataclass
class World:
    ledger: Ledger
    environment_uid: str = UID
    silent_times: int = 0
    bug: bool = False
    full: set[str] = field(default_factory=set)
    away_times: int = 0
    """How many looks at a fleet find it without a host."""
    exchanging: set[str] = field(default_factory=set)
    mounted: set[str] = field(default_factory=set)
    made: list[tuple[str, str, str]] = field(default_factory=list)

    async def instances(self, fleet: str) -> Sequence[Instance]:
        if self.away_times:
            self.away_times -= 1
            return ()
        book = self.ledger.read_book(())
        return [one for one in book.instances if one.fleet == fleet]

    async def is_exchanging(self, fleet: str) -> bool:
        return fleet in self.exchanging

    async def reach(self, instance: Instance) -> Host:
        if self.bug:
            raise LookupError("nobody expects this")
        if self.silent_times:
            self.silent_times -= 1
            raise TemporaryError("the host is silent")
        return Host(self)

    async def reach_some(self, instances: Sequence[Instance]) -> dict[str, object]:
        return {one.uid: await self.reach(one) for one in instances}

    async def depart(self, instance: Instance) -> None:
        raise PermanentError("nothing departs here")

    async def unmounted(self, volume: str, fleet: str) -> None:
        if volume in self.mounted:
            raise PermanentError(f"run/train is at work with {volume} mounted")

    def ends_asked(self) -> None: ...


class Watching(Silent):
    def __init__(self) -> None:
        self.finished: dict[str, str] = {}

    def step_finished(self, step: Step, error: str) -> None:
        self.finished[step.key] = error

    def run_changed(self, run: Run, message: str) -> None: ...


def test_a_silent_host_of_another_machine_is_not_waited_for(ledger: Ledger) -> None:
    """It was reached before; a share of this machine, and a host that is new, are reached."""
    asked: list[str] = []

    class Asked(World):
        async def instances(self, fleet: str) -> Sequence[Instance]:
            silent = {"install_id": "i", "state": InstanceState.UNREACHABLE}
            return [
                Instance("1", "share", fleet, 0, **silent),
                Instance("2", "silent", fleet, 1, provider="ssh", **silent),
                Instance("3", "new", fleet, 2, InstanceState.PROVISIONING, provider="ssh"),
                Instance("4", "there", fleet, 3, InstanceState.READY, provider="ssh"),
            ]

        async def reach(self, instance: Instance) -> Host:
            asked.append(instance.name)
            return Host(self)

    outcome, _ = carry_out(ledger, Asked(ledger), planned(tree(FLEET), ledger.read_live()))
    assert outcome.state == "done"
    assert asked == ["share", "new", "there"]


async def gate(call: Callable[[], T]) -> T:
    await asyncio.sleep(0)
    return call()


@pytest.fixture
def ledger() -> Ledger:
    return ledger_in_memory(UID, RandomIds(), now_ms=0)


FLEET = fleet("pool")
A = volume("a", on="pool", path="a")
B = volume("b", on="pool", path="b")


def carry_out(ledger: Ledger, world: World, plan: Plan) -> tuple[Outcome, dict[str, str]]:
    progress = Watching()

    async def main() -> Outcome:
        accepted = ledger.accept(plan, dump(plan), who="a test", now_ms=0)
        return await execute(
            plan,
            accepted,
            ledger=ledger,
            gate=gate,
            access=world,
            clock=VirtualClock(),
            progress=progress,
        )

    return run(main(), VirtualLoop()), progress.finished


def plan_of(ledger: Ledger, *declared: Declared) -> Plan:
    return planned(tree(*declared), ledger.read_live())


def test_everything_is_made_and_written(ledger: Ledger) -> None:
    """After a plan is carried out a second one is empty, and each volume was made once."""
    world = World(ledger)
    everything = (FLEET, A, B, task("train", fleets=["pool"]))
    outcome, _ = carry_out(ledger, world, plan_of(ledger, *everything))
    assert outcome.state == "done"
    assert sorted(path for _, _, path in world.made) == ["/volumes/a", "/volumes/b"]
    assert plan_of(ledger, *everything).is_empty


def test_what_a_host_answers_is_written_with_the_result(ledger: Ledger) -> None:
    """A volume that was put aside before lies in two places, and the ledger knows both."""
    aside = volume("a", on="pool", path="a", deletion_policy="snapshot")
    carry_out(ledger, World(ledger), plan_of(ledger, FLEET, aside))
    outcome, _ = carry_out(ledger, World(ledger), plan_of(ledger, FLEET))
    assert outcome.state == "done"
    places = sorted(one.place for one in ledger.read_snapshots())
    first = min(places)
    assert first.startswith("a.snapshot-a-")
    assert [one.removeprefix(first)[:1] for one in places] == ["", "-"]


def test_a_failure_stops_only_what_needs_it(ledger: Ledger) -> None:
    """A volume without space keeps back the run that mounts it, and nothing else."""
    world = World(ledger, full={"/volumes/a"})
    mounts = [{"name": "a", "path": "data"}]
    everything = (FLEET, A, B, task("needs-a", volumes=mounts), task("free"))
    outcome, finished = carry_out(ledger, world, plan_of(ledger, *everything))
    assert outcome.state == "failed"
    assert list(outcome.failed) == ["volume.make:volume/a"]
    assert "no space" in finished["volume.make:volume/a"]
    assert outcome.not_reached == ["run.submit:run/needs-a"]
    left = {str(change.key) for change in plan_of(ledger, *everything).changes}
    assert left == {"volume/a", "run/needs-a"}


def test_a_passing_failure_is_tried_again(ledger: Ledger) -> None:
    """A host that is silent for a moment does not fail the plan."""
    outcome, _ = carry_out(ledger, World(ledger, silent_times=3), plan_of(ledger, FLEET))
    assert outcome.state == "done"


def test_a_volume_waits_for_the_host_that_takes_anothers_place(ledger: Ledger) -> None:
    """For a while the fleet has none; it has some declared, and nobody has to apply again."""
    carry_out(ledger, World(ledger), plan_of(ledger, FLEET))
    world = World(ledger, away_times=30, exchanging={"pool"})
    outcome, _ = carry_out(ledger, world, plan_of(ledger, FLEET, A))
    assert (outcome.state, [path for _, _, path in world.made]) == ("done", ["/volumes/a"])


def test_a_volume_waits_for_no_host_of_a_fleet_without_any(ledger: Ledger) -> None:
    """Nobody exchanges what is not there: it fails at once, and says what to declare."""
    carry_out(ledger, World(ledger), plan_of(ledger, FLEET))
    world = World(ledger, away_times=1)
    outcome, _ = carry_out(ledger, world, plan_of(ledger, FLEET, A))
    assert outcome.failed == {
        "volume.make:volume/a": "fleet pool has no host for volume a; declare at least one"
        " node in the fleet"
    }


def test_a_volume_does_not_wait_for_ever(ledger: Ledger) -> None:
    """An exchange that gets no host is told as what it is."""
    carry_out(ledger, World(ledger), plan_of(ledger, FLEET))
    world = World(ledger, away_times=1_000_000, exchanging={"pool"})
    outcome, _ = carry_out(ledger, world, plan_of(ledger, FLEET, A))
    assert outcome.failed == {
        "volume.make:volume/a": "fleet pool is replacing its hosts, and no new host is ready"
    }


def test_a_host_that_stays_silent_fails_its_step(ledger: Ledger) -> None:
    """After the last try the step has failed, with the provider's sentence."""
    outcome, _ = carry_out(ledger, World(ledger, silent_times=99), plan_of(ledger, FLEET))
    assert outcome.failed == {"fleet.make:fleet/pool": "the host is silent"}


def test_what_no_provider_may_raise_leaves_the_operation_open(ledger: Ledger) -> None:
    """A fault of ours ends the plan at once; the next manager finds it unfinished, same uids."""
    plan = plan_of(ledger, FLEET, A)
    with pytest.raises(LookupError):
        carry_out(ledger, World(ledger, bug=True), plan)
    accepted, body = ledger.unfinished_apply() or pytest.fail("nothing is open")
    assert body == dump(plan)
    assert accepted.done == frozenset()
    outcome, _ = carry_out(ledger, World(ledger), plan)
    assert outcome.state == "done"
    assert ledger.unfinished_apply() is not None  # Its end is the manager's to write.


@pytest.mark.parametrize("policy", ["delete", "snapshot", "retain"])
def test_what_somebody_has_mounted_stays(ledger: Ledger, policy: str) -> None:
    """However it was to go; the row stays too, and the next plan says why."""
    kept = volume("a", on="pool", path="a", deletion_policy=policy)
    carry_out(ledger, World(ledger), plan_of(ledger, FLEET, kept))
    plan = planned(tree(FLEET), ledger.read_live(), allow_destroy=True)
    outcome, finished = carry_out(ledger, World(ledger, mounted={"a"}), plan)
    assert outcome.state == "failed"
    assert list(finished.values()) == ["run/train is at work with a mounted"]
    assert kept.key in ledger.read_live().resources
    again = planned(tree(FLEET), ledger.read_live(), allow_destroy=True)
    assert carry_out(ledger, World(ledger), again)[0].state == "done"

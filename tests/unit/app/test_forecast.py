"""What a plan would come to at once: the scheduler's own round over what there will be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fleetform.app.forecast import MachineSize, forecast
from fleetform.app.offers import offers_of_fleet
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import Plan
from fleetform.model.run import Run, RunState, RunUid, from_document
from fleetform.model.scaling import Scaling
from fleetform.model.scheduler_state import Outcome, SchedulerState
from fleetform.spec.desired import Declared
from fleetform.views.plan.costs import total_cost_texts
from fleetform.views.plan.notes import forecast_lines
from unit.plan.trees import NOW_MS, declare, element, fleet, item, ledger, planned, row, task, tree

OLD = tuple(element("s", lr=lr) for lr in (1, 2, 3))
EMPTY = SchedulerState(0, {}, {}, (), (), (), {})
HOST = {"local": {"cpu": 4000, "memory": 8 << 30}}


def needs(millicores: int) -> dict[str, Any]:
    return {"resources": {"cpu": {"min": millicores, "max": millicores}}}


def foretold(*declared: Any) -> tuple[Plan, dict[str, Any]]:
    plan = planned(tree(*declared), ledger())
    return plan, forecast(plan, None, now_ms=NOW_MS)


def test_what_fits_starts_and_what_does_not_waits():
    """On hosts that the plan itself makes."""
    _, found = foretold(
        fleet("local", **HOST), task("a1", **needs(3000)), task("b2", **needs(3000))
    )
    assert found["starts"] == {"total": 1, "first": ["a1"]}
    assert [one["run"] for one in found["waits"]["first"]] == ["b2"]
    assert found["impossible"]["total"] == 0


def test_a_run_that_is_declared_stopped_never_starts_and_aborts_what_needs_it():
    """It does not wait, whatever room there is."""
    needy = task("needy", depends_on={"runs": [{"run": "still"}]})
    _, found = foretold(fleet("local", **HOST), task("still", state="stopped"), needy)
    assert (found["starts"]["total"], found["waits"]["total"]) == (0, 0)
    assert [one["run"] for one in found["impossible"]["first"]] == ["needy"]


def test_what_depends_waits_and_what_is_too_large_never_starts():
    """With their reasons."""
    _, found = foretold(
        fleet("local", **HOST),
        task("data"),
        task("train", depends_on={"runs": [{"run": "data"}]}),
        task("huge", **needs(64_000)),
    )
    assert found["starts"]["first"] == ["data"]
    assert "waits for data" in found["waits"]["first"][0]["reasons"][0]
    assert [one["run"] for one in found["impossible"]["first"]] == ["huge"]


def test_hosts_of_which_nobody_knows_what_they_have_promise_nothing():
    """Their runs are unknown, and no wait is told; what waits for something else does."""
    _, found = foretold(
        fleet("local"), task("a1"), task("b2", depends_on={"runs": [{"run": "a1"}]})
    )
    assert found["starts"]["total"] == 0
    assert found["unknown"]["first"] == ["a1"]
    assert found["waits"]["first"] == [
        {"run": "b2", "reasons": ["waits for a1 to succeed; it is submitted"]}
    ]


def over_ssh(*names: str, **capacity: Any) -> Declared:
    hosts = [{"hostname": name, **({"capacity": capacity} if capacity else {})} for name in names]
    return declare("fleet", "far", {"type": "fleet", "ssh_config": {"hosts": hosts}})


GPUS = {"name": ["A100"], "count": {"min": 8, "max": 8}}


def test_hosts_over_ssh_have_what_is_declared_of_them():
    """Not a share of the machine that plans; what is not declared is detected once there is an agent."""
    runs = (task("a1", **needs(8000)), task("b2", **needs(8000)), task("c3", **needs(8000)))
    capacity = {"cpu": 8000, "memory": 8 << 30, "gpu": GPUS}
    _, found = foretold(over_ssh("gpu1", "gpu2", **capacity), *runs)
    assert found["starts"]["first"] == ["a1", "b2"]
    assert [one["run"] for one in found["waits"]["first"]] == ["c3"]
    _, found = foretold_here(MACHINE, over_ssh("gpu1", "gpu2"), *runs)
    assert found["unknown"]["first"] == ["a1", "b2", "c3"]


def test_new_runs_are_of_the_person_who_applies_them():
    """Where agents are root, a run waits for an account on the host, and for no other command."""
    host = Instance(
        "u1", "far-0", "far", 0, InstanceState.READY, provider="ssh", cpu_millicores=8000,
        memory_bytes=8 << 30, agent_account="root", accounts=("ada",),
    )  # fmt: skip
    plan = planned(tree(over_ssh("far-0"), task("a1")), ledger())
    book = replace(EMPTY, instances=(host,))
    hers = forecast(plan, book, person="ada", now_ms=NOW_MS)
    his = forecast(plan, book, person="bob", now_ms=NOW_MS)
    assert hers["starts"]["first"] == ["a1"], hers
    assert his["waits"]["first"][0]["reasons"] == ["account bob does not exist on host far-0"]


def test_a_host_over_ssh_stays_by_its_name():
    """Whatever its number: another host may come before it in the list."""
    before, after = over_ssh("gpu2"), over_ssh("gpu1", "gpu2")
    plan = planned(tree(after, task("a1")), ledger(row(before)))
    host = Instance("i", "gpu2", "far", 0, InstanceState.READY, cpu_millicores=4000)
    found = forecast(plan, replace(EMPTY, instances=(host,)), now_ms=NOW_MS)
    assert found["starts"]["first"] == ["a1"]


@dataclass(frozen=True)
class FakeMachine:
    """Eight CPUs, and a driver for GPUs or none."""

    has_driver: bool = False

    def size(self) -> MachineSize:
        return MachineSize(8000, 16 << 30, 1 << 40)

    def may_have_gpus(self) -> bool:
        return self.has_driver


MACHINE = FakeMachine()


def foretold_here(machine: FakeMachine, *declared: Any) -> tuple[Plan, dict[str, Any]]:
    plan = planned(tree(*declared), ledger())
    return plan, forecast(plan, None, machine=machine, now_ms=NOW_MS)


def test_a_fleet_of_this_machine_has_what_the_machine_has():
    """Before `local: true` is created, its size is known: that of the machine which plans."""
    _, found = foretold_here(
        MACHINE, fleet("local"), task("a1", **needs(8000)), task("huge", **needs(64_000))
    )
    assert found["starts"]["first"] == ["a1"]
    assert [one["run"] for one in found["impossible"]["first"]] == ["huge"]
    assert found["unknown"]["total"] == 0


def test_hosts_of_one_machine_share_it():
    """Two nodes have half each; what is declared counts for each as it stands."""
    halves = fleet("local", nodes=2)
    _, found = foretold_here(
        MACHINE, halves, task("half", **needs(4000)), task("all", **needs(8000))
    )
    assert found["starts"]["first"] == ["half"]
    assert [one["run"] for one in found["impossible"]["first"]] == ["all"]


def test_gpus_of_this_machine_are_not_asked_for():
    """A driver takes seconds to answer: runs that need GPUs stay unknown where there is one."""
    gpu = {"resources": {"gpu": {"count": {"min": 1, "max": 1}}}}
    with_driver = FakeMachine(has_driver=True)
    _, found = foretold_here(with_driver, fleet("local"), task("gpu", **gpu), task("cpu"))
    assert (found["unknown"]["first"], found["starts"]["first"]) == (["gpu"], ["cpu"])
    _, found = foretold_here(MACHINE, fleet("local"), task("gpu", **gpu))
    assert found["impossible"]["total"] == 1


def test_only_runs_of_the_plan_are_foretold():
    """A run that waits already, and that the plan does not touch, is no news of this plan."""
    hosts, old, new = fleet("local", **HOST), task("old", **needs(64_000)), task("new")
    waiting = Run(
        RunUid("u"), "old", from_document("old", old.document), RunState.SUBMITTED, 1, attempt=1
    )
    outcome = Outcome(RunState.SUBMITTED, "", "", started=False)
    book = replace(EMPTY, runs={waiting.uid: waiting}, outcomes={"old": outcome})
    plan = planned(tree(hosts, old, new), ledger(row(old, RunState.SUBMITTED)))
    found = forecast(plan, book, now_ms=NOW_MS)
    assert found["starts"]["first"] == ["new"]
    # Without hosts it waited; with those that the plan creates it is known that none will do.
    assert [one["run"] for one in found["impossible"]["first"]] == ["old"]
    again = planned(tree(hosts, old, new), ledger(row(hosts), row(old, RunState.SUBMITTED)))
    host = Instance(
        "i", "local-0", "local", 0, InstanceState.READY, cpu_millicores=4000, memory_bytes=8 << 30
    )
    found = forecast(again, replace(book, instances=(host,)), now_ms=NOW_MS)
    assert found["starts"]["first"] == ["new"]
    assert found["impossible"]["total"] == found["waits"]["total"] == 0


def test_a_run_that_starts_is_counted_once():
    """Where some wait and others never start, the number of those that start stands once."""
    plan, found = foretold(
        fleet("local", **HOST),
        task("a1", **needs(3000)),
        task("b2", **needs(3000)),
        task("huge", **needs(64_000)),
    )
    lines = forecast_lines(replace(plan, annex={"forecast": found}))
    assert lines[0] == "1 run would wait, and 1 would start now:"
    assert lines[2] == "1 run would be unschedulable:"


def test_nothing_is_said_of_waiting_for_hosts_that_nobody_knows_yet():
    """`local: true` says its size when it is created; until then a number of starts is a guess."""
    plan, found = foretold(
        fleet("local"), task("a1"), task("b2", depends_on={"runs": [{"run": "a1"}]})
    )
    assert forecast_lines(replace(plan, annex={"forecast": found})) == ()


def test_runs_that_wait_are_listed_as_people_count():
    """The second element before the tenth."""
    elements = [item("arr", index, **needs(3000)) for index in range(1, 13)]
    plan, found = foretold(fleet("local", **HOST), *elements)
    starting = found["starts"]["first"]
    waiting = [f"arr[{index}]" for index in range(1, 13) if f"arr[{index}]" not in starting]
    lines = forecast_lines(replace(plan, annex={"forecast": found}))
    assert [one.split(":")[0].strip() for one in lines[1:4]] == waiting[:3]


def test_the_first_element_is_the_first_to_start():
    """As it will be: `array[2]` starts before `array[10]`."""
    elements = [item("arr", index, **needs(2000)) for index in range(1, 13)]
    _, found = foretold(fleet("local", **HOST), *elements)
    assert found["starts"]["first"] == ["arr[1]", "arr[2]"]


def test_a_removed_element_is_no_longer_waited_for():
    """Where one element replaces another, a dependent waits for the elements of the plan alone."""
    after = task("best", depends_on={"runs": [{"run": "s"}]})
    plan = planned(tree(*(element("s", lr=lr) for lr in (1, 2, 9)), after), ledger(*map(row, OLD)))
    done = {one.key.name: Outcome(RunState.DONE, "s", one.element, started=True) for one in OLD}
    found = forecast(plan, replace(EMPTY, outcomes=done), now_ms=NOW_MS)
    (waiting,) = (one for one in found["waits"]["first"] if one["run"] == "best")
    assert waiting["reasons"][0] == "waits for all of s to succeed; 2 of 3 have succeeded"


def test_a_plan_without_runs_foretells_nothing():
    """There is nothing to start."""
    assert foretold(fleet("local", **HOST))[1] == {}


def test_only_what_would_not_start_is_told():
    """A line less to read where all goes as expected."""
    plan, found = foretold(fleet("local", **HOST), task("a1", **needs(1000)))
    assert forecast_lines(replace(plan, annex={"forecast": found})) == ()
    plan, found = foretold(
        fleet("local", **HOST), task("a1", **needs(3000)), task("b2", **needs(3000))
    )
    lines = forecast_lines(replace(plan, annex={"forecast": found}))
    assert lines[0] == "1 run would wait, and 1 would start now:"
    assert lines[1].startswith("  b2: ")
    assert forecast_lines(plan) == ()
    found["starts"]["total"] = 0
    lines = forecast_lines(replace(plan, annex={"forecast": found}))
    assert lines[0] == "1 run would wait, and none would start now:"


def test_demand_brings_in_hosts():
    """Runs wait for hosts that the planned fleet creates for them, and the others are told its limit."""
    document = {
        "type": "fleet",
        "nodes": {"min": 0, "target": 0, "max": 2},
        "sharing": "whole",
        "regions": ["us-east-1"],
        "instance_types": ["g5.xlarge"],
        "aws": {"account": "123456789012", "ssh_from": ["203.0.113.7/32"], "image": "ami-1"},
    }
    declared = declare("fleet", "gpus", document)
    live = replace(ledger(), offers={"gpus": offers_of_fleet(declared.document)})
    runs = [task(name) for name in ("a1", "b2", "c3")]
    plan = planned(tree(declared, *runs), live)
    waits = {
        one["run"]: one["reasons"] for one in forecast(plan, None, now_ms=NOW_MS)["waits"]["first"]
    }
    assert waits["a1"] == waits["b2"] == ["waits for 1 host that fleet gpus will create"]
    assert "fleet gpus has at most 2 hosts" in waits["c3"]


def test_the_cost_of_what_demand_brings_in():
    """Also of a fleet that does not change: no other line of the plan says what is bought."""
    bounds = {"min": 0, "target": 0, "max": 2}
    aws = {"account": "123456789012", "ssh_from": ["203.0.113.7/32"], "image": "ami-1"}
    declared = declare(
        "fleet", "gpus",
        {
            "type": "fleet", "nodes": bounds, "sharing": "whole", "regions": ["us-east-1"],
            "instance_types": ["g5.xlarge"], "aws": aws,
        },
    )  # fmt: skip
    live = replace(ledger(), offers={"gpus": offers_of_fleet(declared.document)})
    created = planned(tree(declared), live).steps[-1].arguments
    scaling = Scaling.from_step("gpus", declared.document, created["scaling"], ())
    now = replace(EMPTY, scaling={"gpus": scaling})
    plan = planned(
        tree(declared, task("a1"), task("b2")),
        replace(live, resources={declared.key: row(declared)}),
    )
    found = forecast(plan, now, now_ms=NOW_MS)
    assert [str(change.key) for change in plan.changes] == ["run/a1", "run/b2"]
    (shown,) = total_cost_texts(replace(plan, annex={"forecast": found}))
    assert shown == (
        "Cost of fleet gpus by demand: $0.00/h → $2.02/h, with 2 hosts that it will create for"
        " 2 waiting runs (g5.xlarge in us-east-1, $1.006/h each)."
    )

"""How many hosts go with a fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.live import Live, Work
from fleetform.model.plan import HeldBy, Permissions, Plan, Scope
from fleetform.model.predicates import AtWork
from fleetform.model.rollout_status import RolloutStatus
from fleetform.model.run import RunState
from fleetform.spec.desired import Desired
from fleetform.views.plan.json import to_json
from fleetform.views.plan.markdown import render as markdown
from fleetform.views.plan.text import render
from unit.plan.blockers.guards import make
from unit.plan.trees import fleet, ledger, planned, row, task, tree

UNDER_WAY = RolloutStatus(hosts=3, updated=1, waiting=1, busy=1)

RECREATE = {"update": {"strategy": "recreate"}}


def three_up(*, nodes: int = 1, **fields: object) -> Live:
    """Two more than are declared: they leave once their work has ended."""
    up = tuple(
        Instance(f"uid-{number}", f"gpu-{number}", "gpu", number, InstanceState.READY)
        for number in range(3)
    )
    return replace(ledger(row(fleet("gpu", nodes=nodes, **fields))), instances=up)


def said(plan: Plan) -> list[str]:
    return [one.at_stake for one in (*plan.changes, *(held.change for held in plan.held))]


def test_hosts_that_leave_are_there_until_they_have_left() -> None:
    """Whoever removes a fleet ends what is on all of its hosts, whether it is held or not."""
    words = ["3 hosts"]
    assert said(planned(tree(), three_up(), allow_destroy=True)) == words
    assert said(planned(tree(), three_up())) == words


def test_hosts_that_were_not_made_yet_are_no_loss() -> None:
    """More may be declared than there are."""
    words = ["3 hosts"]
    assert said(planned(tree(), three_up(nodes=8), allow_destroy=True)) == words


def test_where_no_host_is_known_those_declared_are_counted() -> None:
    """A ledger that knows of none may be wrong about that."""
    bare = replace(three_up(), instances=())
    assert said(planned(tree(), bare)) == ["1 host"]


def test_hosts_that_are_recreated_are_counted_as_they_are() -> None:
    """A template that does not wait for work takes all hosts; one that is named is named."""
    changed: Desired = tree(fleet("gpu", nodes=1, sharing="blocks", blocks=2, **RECREATE))
    assert said(planned(changed, three_up(**RECREATE))) == [
        "3 hosts and all jobs there, because of `update: {strategy: recreate}`"
    ]
    same = tree(fleet("gpu", nodes=1, **RECREATE))
    one = make(same, three_up(**RECREATE), Scope(replaces=("host/gpu-1",)))
    assert said(one) == ["host gpu-1 and all jobs there, because of `update: {strategy: recreate}`"]


@pytest.mark.parametrize("under_way", [True, False])
def test_an_exchange_that_hurries_takes_more_than_the_host_asked_for(under_way: bool) -> None:
    """One host is named beside it: all who end are counted, and whoever begins is a stale plan."""
    two = tuple(
        Work(run, "gpu", 1, 0, hosts=(host,))
        for run, host in (("train", "gpu-0"), ("eval", "gpu-1"))
    )
    live = replace(three_up(nodes=3), work=two)
    if under_way:
        live = replace(live, exchanging={"gpu": UNDER_WAY})
    made = make(tree(fleet("gpu", nodes=3, **RECREATE)), live, Scope(replaces=("host/gpu-1",)))
    (change,) = made.changes
    assert change.stake is not None
    (pinned,) = [one for one in made.predicates if one.claim == "at-work"]
    at_work = AtWork.of(pinned.value)
    if under_way:
        assert (
            change.at_stake
            == "3 hosts and all jobs there, because of `update: {strategy: recreate}`"
        )
        assert change.stake.runs == ("eval", "train")
        assert at_work == AtWork(frozenset({"eval", "train"}))
    else:
        assert (
            change.at_stake
            == "host gpu-1 and all jobs there, because of `update: {strategy: recreate}`"
        )
        assert change.stake.runs == ("eval",)
        assert at_work == AtWork(frozenset({"eval"}), frozenset({"gpu-1"}))


@pytest.mark.parametrize("under_way", [True, False])
def test_an_exchange_under_way_that_shall_wait_for_nobody_ends_work(under_way: bool) -> None:
    """The plan says so and needs permission; where none is under way, it is a word for the next."""
    live = ledger(row(fleet("pool")))
    if under_way:
        live = replace(live, exchanging={"pool": UNDER_WAY}, work=(Work("train", "pool", 1, 0),))
    desired = tree(fleet("pool", update={"strategy": "recreate"}))
    made = planned(desired, live)
    assert check(made, desired, live, Permissions()) == ()
    assert bool(made.held) is under_way
    made = planned(desired, live, allow_destroy=True)
    assert check(made, desired, live, Permissions(allow_destroy=True)) == ()
    (change,) = made.changes
    assert change.destructive is under_way
    if under_way:
        assert change.stake is not None
        assert change.stake.runs == ("train",)
        bold = replace(made, changes=(replace(change, destructive=False, at_stake=""),))
        assert check(bold, desired, live, Permissions()) != ()


@pytest.mark.parametrize("state", ["present", "failed"])
def test_a_fleet_that_has_lost_its_digest_has_its_hosts_still(state: str) -> None:
    """A later step of it failed or was broken off: what was made before is there with its work."""
    guarded = task("train", protect=True, fleets=["gpu"])
    live = three_up(nodes=3, **RECREATE)
    (one,) = live.resources.values()
    lost = replace(one, digest="", execution_digest="", own_digest="", state=state)
    rows = {each.key: each for each in (lost, row(guarded, RunState.RUNNING))}
    live = replace(live, resources=rows, work=(Work("train", "gpu", 1, 0, hosts=("gpu-0",)),))
    other = fleet("gpu", nodes=3, sharing="blocks", blocks=2, **RECREATE)
    desired = tree(other, guarded)
    made = planned(desired, live, allow_destroy=True)
    assert check(made, desired, live, Permissions(allow_destroy=True)) == ()
    assert [(held.change.key.name, held.by) for held in made.held] == [("gpu", HeldBy.PROTECTION)]
    free = replace(live, resources={**rows, guarded.key: row(task("train"), RunState.RUNNING)})
    desired = tree(other, task("train"))
    assert [held.by for held in planned(desired, free).held] == [HeldBy.DESTRUCTIVE]
    made = planned(desired, free, allow_destroy=True)
    (change,) = made.changes
    assert change.stake is not None
    assert change.stake.runs == ("train",)
    # Whoever takes a row without a digest for nothing at all is refused by the second reader.
    bold = replace(made, changes=(replace(change, destructive=False, at_stake=""),))
    assert check(bold, desired, free, Permissions()) != ()


@pytest.mark.parametrize("template", ["of-another", ""])
def test_hosts_of_a_fleet_that_was_never_made_in_whole_end_as_others_do(template: str) -> None:
    """It has no document; what it was begun with stands with its hosts, where anybody knows it."""
    live = three_up(nodes=3)
    (one,) = live.resources.values()
    begun = replace(one, digest="", execution_digest="", own_digest="", document="{}")
    up = tuple(
        replace(host, install_id="install", template_digest=template) for host in live.instances
    )
    work = (Work("train", "gpu", 1, 0, hosts=("gpu-0",)),)
    live = replace(live, resources={one.key: begun}, instances=up, work=work)
    desired = tree(fleet("gpu", nodes=3, **RECREATE))
    made = planned(desired, live)
    assert check(made, desired, live, Permissions()) == ()
    assert bool(made.held) is bool(template)
    made = planned(desired, live, allow_destroy=True)
    assert check(made, desired, live, Permissions(allow_destroy=True)) == ()
    (change,) = made.changes
    assert change.destructive is bool(template)
    if template:
        bold = replace(made, changes=(replace(change, destructive=False, at_stake=""),))
        assert check(bold, desired, live, Permissions()) != ()
    # Another host is asked for beside it: all of them end, or just that one.
    made = make(desired, live, Scope(replaces=("host/gpu-1",)))
    (pinned,) = [AtWork.of(one.value) for one in made.predicates if one.claim == "at-work"]
    assert pinned.hosts == (frozenset() if template else {"gpu-1"})


def test_the_hosts_that_a_change_removes_are_named() -> None:
    """A number does not say which: those with the highest numbers leave, and with a fleet all of them."""
    reduced = planned(tree(fleet("gpu", nodes=2)), three_up(nodes=3))
    assert reduced.annex["hosts_removed"] == {"gpu": ["gpu-2"]}
    assert "      hosts removed: gpu-2" in [
        "".join(one.text for one in each.spans) for each in render(reduced)
    ]
    assert "Hosts removed: gpu-2" in markdown(reduced)
    (change,) = to_json(reduced, version="1")["resource_changes"]
    assert change["hosts_removed"] == ["gpu-2"]
    everything = ["gpu-0", "gpu-1", "gpu-2"]
    assert planned(tree(), three_up()).annex["hosts_removed"] == {"gpu": everything}


def test_the_runs_that_the_removal_of_a_host_waits_for_are_named() -> None:
    """Those on hosts that stay are not."""
    work = tuple(Work(name, "gpu", 1, 0, hosts=(host,)) for name, host in RUNS_ON)
    reduced = planned(tree(fleet("gpu", nodes=2)), replace(three_up(nodes=3), work=work))
    shown = "      hosts removed: gpu-2; when run sleeper has ended"
    assert shown in ["".join(one.text for one in each.spans) for each in render(reduced)]
    (change,) = reduced.changes
    ending = replace(reduced, changes=(replace(change, at_stake="all jobs on host gpu-2"),))
    assert shown not in ["".join(one.text for one in each.spans) for each in render(ending)]


RUNS_ON = (("sleeper", "gpu-2"), ("other", "gpu-0"))


def test_no_host_is_named_that_stays_or_leaves_already() -> None:
    """A fleet that grows removes none, and what an earlier plan removed is not removed again."""
    grown = planned(tree(fleet("gpu", nodes=4)), three_up(nodes=3))
    assert "hosts_removed" not in grown.annex
    (change,) = to_json(grown, version="1")["resource_changes"]
    assert change["hosts_removed"] == []
    live = three_up(nodes=3)
    *stay, last = live.instances
    leaving = replace(live, instances=(*stay, replace(last, state=InstanceState.TERMINATING)))
    smaller = planned(tree(fleet("gpu", nodes=1)), leaving)
    assert smaller.annex["hosts_removed"] == {"gpu": ["gpu-1"]}


def test_a_rollout_that_is_under_way_is_noted():
    """A plan that changes nothing says how far it is, as text, Markdown and JSON."""
    live = replace(ledger(row(fleet("gpu", nodes=3))), exchanging={"gpu": UNDER_WAY})
    plan = planned(tree(fleet("gpu", nodes=3)), live)
    assert plan.changes == ()
    sentence = "rollout of fleet/gpu: 1 of 3 hosts have the new template; 1 waits (1 busy), 1 is being replaced"
    assert sentence in "\n".join(one.text for one in render(plan))
    assert sentence in markdown(plan)
    counts = {"hosts": 3, "updated": 1, "waiting": 1, "busy": 1}
    assert to_json(plan, version="1")["rollouts"] == [{"fleet": "gpu", **counts}]
    assert "rollout" not in "\n".join(one.text for one in render(planned(tree(), ledger())))

"""Hosts over SSH in the ledger: known by name, and written off only at a person's word."""

from __future__ import annotations

from contract.ledgers import Desk, carry_out, step, submit_step, written
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.instance import InstanceState, request_of
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.model.rollout import Exchange, Move, Template


def ssh_step(*names: str, verb: str = "fleet.make", lost: dict[str, str] | None = None) -> Step:
    places = [
        {"name": name, "provider": "ssh", "endpoint": {"hostname": name, "user": "root"}}
        for name in names
    ]
    document = {"ssh_config": {"hosts": [{"hostname": name} for name in names]}}
    more = {"lost": lost} if lost else {}
    return step(verb, "gpu", **written(document, type="fleet", instances=places, **more))


def numbers(ledger: Ledger) -> dict[str, int]:
    return {
        one.name: one.number
        for one in ledger.read_live().instances
        if one.state is not InstanceState.TERMINATING
    }


def opened(ledger: Ledger, *names: str) -> Desk:
    carry_out(ledger, [ssh_step(*names)])
    desk = Desk(ledger, ledger.take_fence(who="test", now_ms=1))
    desk.instances = tuple(one.uid for one in ledger.read_live().instances)
    for uid in desk.instances:
        desk.greet(uid, cpus=8)
    return desk


def test_a_host_is_asked_for_as_it_is_declared(ledger: Ledger) -> None:
    """Its provider and endpoint are in its row, and it is no share of this machine."""
    opened(ledger, "a", "b")
    first, second = (request_of(one) for one in ledger.read_live().instances)
    assert (first.provider, first.endpoint) == ("ssh", {"hostname": "a", "user": "root"})
    assert second.share == (1, 0)


def test_a_host_that_goes_changes_no_other(ledger: Ledger) -> None:
    """The others keep uid and number; a new one takes the lowest number that is free."""
    desk = opened(ledger, "a", "b", "c")
    uids = {one.name: one.uid for one in ledger.read_live().instances}
    carry_out(ledger, [ssh_step("a", "c", verb="fleet.update")])
    assert numbers(ledger) == {"a": 0, "c": 2}
    ledger.retire(uids["b"], fence=desk.fence, now_ms=2)
    carry_out(ledger, [ssh_step("new", "c", "a", verb="fleet.update")])
    assert numbers(ledger) == {"a": 0, "new": 1, "c": 2}
    kept = {one.name: one.uid for one in ledger.read_live().instances}
    assert {name: kept[name] for name in ("a", "c")} == {name: uids[name] for name in ("a", "c")}


def test_a_moved_address_is_the_same_host(ledger: Ledger) -> None:
    """Its row has the new endpoint, and its jobs go on."""
    desk = opened(ledger, "a")
    moved = ssh_step("a", verb="fleet.update")
    moved.arguments["instances"][0]["endpoint"] = {"hostname": "a", "user": "ada"}
    carry_out(ledger, [moved])
    (host,) = ledger.read_live().instances
    assert (host.uid, host.endpoint["user"]) == (desk.instances[0], "ada")
    assert host.state is InstanceState.READY


def test_a_silent_host_at_another_address_is_asked_for_again(ledger: Ledger) -> None:
    """A step waits for it; one whose address is the same stays silent."""
    desk = opened(ledger, "a", "b")
    for uid in desk.instances:
        ledger.mark_instance(uid, state=InstanceState.UNREACHABLE, message="silent", now_ms=2)
    moved = ssh_step("a", "b", verb="fleet.update")
    moved.arguments["instances"][0]["endpoint"] = {"hostname": "a", "port": 2222}
    carry_out(ledger, [moved])
    states = {one.name: one.state for one in ledger.read_live().instances}
    assert states == {"a": InstanceState.PROVISIONING, "b": InstanceState.UNREACHABLE}


def test_a_lost_host_takes_its_jobs_with_it(ledger: Ledger) -> None:
    """They are lost, and nothing of the host is waited for; an unknown name changes nothing."""
    desk = opened(ledger, "a", "b")
    desk.submit(submit_step("train"))
    assert desk.place("train", desk.share(on=1))
    desk.say(desk.record("train", JobState.RUNNING), on=1)
    carry_out(ledger, [ssh_step("a", verb="fleet.update", lost={"b": "fire", "x": "never was"})])
    assert numbers(ledger) == {"a": 0}
    (history,) = ledger.read_runs(["train"])
    (job,) = history.attempts[-1].jobs
    assert (job.state, job.cause) == (JobState.FINISHED, Cause.LOST)
    assert "host b is declared lost: fire" in job.message
    assert not ledger.read_book().allocations


def test_a_quarantine_outlasts_a_rollout(ledger: Ledger) -> None:
    """The new host is the same machine; a host that leaves the fleet takes its quarantine along."""
    desk = opened(ledger, "a", "b")
    wanted = ssh_step("a", "b", verb="fleet.update")
    wanted.arguments["template"] = "two"
    carry_out(ledger, [wanted])
    for name in ("a", "b"):
        ledger.put_overrides(
            OverrideKind.QUARANTINE, [f"host/{name}"], reason="", who="x", now_ms=1, until_ms=None
        )
    template = Template("two", "drain", 2, (0, 1))
    leaving = [Exchange(Move.LEAVE, desk.instances[0])]
    ledger.commit_exchanges("gpu", template, leaving, fence=desk.fence, now_ms=2)
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    ledger.commit_exchanges(
        "gpu", template, [Exchange(Move.MAKE, number=0)], fence=desk.fence, now_ms=2
    )
    assert numbers(ledger) == {"a": 0, "b": 1}
    carry_out(ledger, [ssh_step("a", verb="fleet.update")])
    ledger.retire(desk.instances[1], fence=desk.fence, now_ms=2)
    assert [one.target for one in ledger.read_overrides()] == ["host/a"]

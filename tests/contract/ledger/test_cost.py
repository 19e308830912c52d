"""What the ledger knows of the costs of hosts and of the runs on them."""

from __future__ import annotations

import dataclasses

from contract.ledgers import Desk, submit_step
from fleetform.agents.protocol.states import JobState
from fleetform.model.cost import BoughtHost, HostUse, Spending
from fleetform.model.drift import GONE, Drift, DriftClass, RecordedDrift, Remedy
from fleetform.model.hourly_cost import HourlyCost
from fleetform.providers.contract.hosts import CreatedHost
from fleetform.spec.desired import ResourceKey


def test_hosts_cost_from_their_creation_and_runs_from_their_start(desk: Desk) -> None:
    """A job has a share of its host; one on a host that no cloud created costs nothing."""
    desk.submit(submit_step("free"))
    desk.run_to_end("free")
    assert desk.ledger.read_spending() == Spending()

    desk = Desk.of(desk.ledger)
    (uid,) = desk.instances
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    desk.ledger.note_created(uid, created, fence=desk.fence, now_ms=7_000)
    desk.greet(uid)
    desk.submit(submit_step("done"), submit_step("runs"))
    desk.run_to_end("done")
    assert desk.place("runs", desk.share(cpu_millicores=4000))
    desk.say(desk.record("runs", JobState.RUNNING))

    spending = desk.ledger.read_spending()
    assert spending.hosts == (BoughtHost(uid, "local", None, 7_000),)
    assert desk.ledger.read_overview().hourly == {"local": HourlyCost(unknown_hosts=1)}
    assert [one for one in spending.uses if one.run != "free"] == [
        HostUse("done", uid, 125, 9_500, 10_000),
        HostUse("runs", uid, 500, 9_500),
    ]


def test_an_instance_that_has_ended_costs_no_more(desk: Desk) -> None:
    """It costs until that was proven, and has no job to forget: nothing keeps its record from being released."""
    (uid,) = desk.instances
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    desk.ledger.note_created(uid, created, fence=desk.fence, now_ms=7_000)
    desk.greet(uid)
    desk.submit(submit_step("done"))
    desk.run_to_end("done")
    assert len(desk.ledger.read_book().lingering) == 1
    for now_ms in (20_000, 30_000):
        desk.ledger.note_ended(uid, "i-1 was terminated", fence=desk.fence, now_ms=now_ms)
    assert desk.ledger.read_book().lingering == ()
    (host,) = desk.ledger.read_spending().hosts
    assert host == BoughtHost(uid, "local", None, 7_000, 20_000)
    assert desk.ledger.read_overview().hourly == {}


def test_an_instance_that_a_look_finds_gone_costs_no_more(desk: Desk) -> None:
    """It costs until the first look that found it, and is counted as gone; one with another id is not meant."""
    (uid,) = desk.instances
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    desk.ledger.note_created(uid, created, fence=desk.fence, now_ms=7_000)
    desk.greet(uid)
    (host,) = desk.ledger.read_live().instances
    drift = Drift(
        ResourceKey("fleet", host.fleet), "host", DriftClass.ENFORCED, Remedy.APPLY, "i-0", GONE, host.name
    )  # fmt: skip
    desk.ledger.note_observations({}, [RecordedDrift(drift, 20_000, 20_000)], at_ms=20_000)
    assert desk.ledger.read_overview().hosts == {"ready": 1}
    for seen_ms in (30_000, 40_000):
        gone = RecordedDrift(dataclasses.replace(drift, expected="i-1"), 30_000, seen_ms)
        desk.ledger.note_observations({}, [gone], at_ms=seen_ms)

    (spent,) = desk.ledger.read_spending().hosts
    assert spent == BoughtHost(uid, "local", None, 7_000, 30_000)
    overview = desk.ledger.read_overview()
    assert (overview.hourly, overview.hosts) == ({}, {"gone": 1})
    assert [(one.name, one.state) for one in overview.troubled_hosts] == [(host.name, "gone")]
    assert desk.ledger.read_live().instances[0].ended_at_ms == 30_000

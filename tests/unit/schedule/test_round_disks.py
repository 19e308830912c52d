"""A disk is on one host of its zone at a time: runs that mount it wait for that host."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import VolumeMount
from fleetform.model.scaling import Scaling
from fleetform.model.volume import NetworkVolume
from unit.schedule.cases import decide, details, instance, run, started

PLACE = {"account": "1", "region": "us-east-1", "zone": "us-east-1a"}
DISK = NetworkVolume(
    "data", "v" * 32, {"provider": "aws", "registered": "", "id": "vol-1", "place": PLACE}
)
FREE = {"disks": {"data": DISK}}


def host(number: int, zone: str = "us-east-1a", **more: object) -> Instance:
    made = instance(f"gpus-{number}", "gpus", number, **more)
    return replace(made, provider="aws", endpoint={**PLACE, "zone": zone})


def user(name: str, number: int = 1):
    return run(name, number, volumes=(VolumeMount("data", "/data"),))


def test_one_run_a_round_gets_a_free_disk():
    """The next round knows its host, and lets the other run share it."""
    hosts = [host(0), host(1)]
    both = {"volume_hosts": {"data": frozenset({"gpus-0", "gpus-1"})}, **FREE}
    decisions = decide([user("a"), user("b", 2)], hosts, **both)
    assert started(decisions) == ["a"]
    assert "volume data is being attached to the host of another run" in details(decisions, "b")
    in_use = {"volume_hosts": {"data": frozenset({"gpus-1"})}}
    assert started(decide([user("b"), user("c", 2)], hosts, **in_use)) == ["b", "c"]


def test_a_run_waits_for_a_host_of_its_zone():
    """It is told which hosts may have the disk."""
    nowhere = {"volume_hosts": {"data": frozenset()}, **FREE}
    decisions = decide([user("a")], [host(0, "us-east-1b")], **nowhere)
    assert started(decisions) == []
    assert "volume data: no host has it" in details(decisions, "a")


def test_a_host_is_created_for_a_disk():
    """One for all runs that need it, and none in another zone."""
    new = host(0, state=InstanceState.UNCREATED, boot_id="")

    def asked(template: Instance) -> int:
        scaling = {"gpus": Scaling(0, 3, 300_000, frozenset(), template)}
        nowhere = {"volume_hosts": {"data": frozenset()}, **FREE}
        runs = [user("a"), user("b", 2)]
        return sum(one.hosts for one in decide(runs, (), scaling=scaling, **nowhere).scale)

    assert asked(new) == 1
    assert asked(replace(new, endpoint={**PLACE, "zone": "us-east-1b"})) == 0


def test_runs_share_a_file_system():
    """They start in one round, on different hosts."""
    shared = {"disks": {"data": replace(DISK, source="fs-1.efs:/")}}
    both = {"volume_hosts": {"data": frozenset({"gpus-0", "gpus-1"})}, **shared}
    assert started(decide([user("a"), user("b", 2)], [host(0), host(1)], **both)) == ["a", "b"]

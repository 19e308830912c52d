"""Volumes on some of the hosts of a fleet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ssh.environment import Environment, wait_for_exit
from lab import Lab

MARK = ".fleetform-volume"


@pytest.fixture
def environment(home: Path, hosts: Lab, tmp_path: Path) -> Iterator[Environment]:
    environment = Environment(tmp_path / "first", hosts)
    yield environment
    environment.run("controller", "stop")
    environment.close()


def volume(environment: Environment, hosts: str = "", policy: str = "retain") -> str:
    listed = f"hosts: [{hosts}]\n" if hosts else ""
    path = f"path: /root/{environment.uid}.data\ndeletion_policy: {policy}\n"
    return f"type: volume\nname: data\nfleet: lab\n{path}{listed}"


def folder(environment: Environment, host: str) -> Path:
    return environment.disk(host) / f"{environment.uid}.data"


def change(environment: Environment, *documents: str, flags: tuple[str, ...] = ()) -> str:
    environment.declare(*documents)
    return wait_for_exit(environment, environment.control("apply", "-y", *flags))


def shown_hosts(environment: Environment) -> dict[str, str]:
    found = environment.json("volume", "show", "data")
    return {one["host"]: one["problem"] for one in found["hosts"]}


def test_runs_go_where_their_volume_is(environment: Environment) -> None:
    """A run waits for the host that has its volume although another one is free, and says so."""
    fleet = environment.fleet("node1", "node2")
    mounting = "volumes: [data:data]\n"
    one, two = environment.job("one", mounting), environment.job("two", mounting)
    serve = environment.serve(fleet, volume(environment, "node1"), one, two)
    first = environment.wait_for_start("one")
    assert first.host == "node1"
    assert json.loads((folder(environment, "node1") / MARK).read_text())["name"] == "data"
    assert not folder(environment, "node2").exists()
    environment.wait_until_printed("why", "two", text="volume data: only node1 has it")
    environment.open_gate("one")
    assert environment.wait_for_start("two").host == "node1"
    environment.open_gate("two")
    environment.wait_for_done(serve, "two")
    environment.declare(
        fleet, volume(environment, "node1"), environment.job("gang", f"nodes: 2\n{mounting}")
    )
    plan = environment.run("plan").stdout
    assert "it needs 2 hosts with volume data, and node1 has it" in plan


def test_hosts_are_added_and_removed_one_by_one(environment: Environment) -> None:
    """A new host gets the directory; the data of a host that leaves goes as the policy says."""
    fleet = environment.fleet("node1", "node2")
    change(environment, fleet, volume(environment, "node1"))
    (folder(environment, "node1") / "kept").write_text("data")
    mark = (folder(environment, "node1") / MARK).stat()
    change(environment, fleet, volume(environment, "node1, node2"))
    assert (folder(environment, "node2") / MARK).exists()
    assert (folder(environment, "node1") / MARK).stat().st_mtime_ns == mark.st_mtime_ns
    assert shown_hosts(environment) == {"node1": "", "node2": ""}
    (folder(environment, "node2") / "kept").write_text("data")

    said = change(environment, fleet, volume(environment, "node1"))
    assert "its data stays" in said
    assert (folder(environment, "node2") / "kept").exists()
    assert shown_hosts(environment) == {"node1": ""}

    both = volume(environment, "node1, node2", policy="delete")
    change(environment, fleet, both)
    assert (folder(environment, "node2") / "kept").exists()
    environment.declare(fleet, volume(environment, "node1", policy="delete"))
    plan = environment.run("plan").stdout
    assert "destructive" in plan
    change(
        environment,
        fleet,
        volume(environment, "node1", policy="delete"),
        flags=("--allow-destroy",),
    )
    assert not folder(environment, "node2").exists()
    assert (folder(environment, "node1") / "kept").exists()
    # What is removed as a whole is removed from the hosts that have it.
    change(environment, fleet, flags=("--allow-destroy",))
    assert not folder(environment, "node1").exists()


def test_a_fleet_gives_its_volumes_to_new_hosts(environment: Environment) -> None:
    """A volume without `hosts` is on all hosts, also on one that the fleet gets later."""
    change(environment, environment.fleet("node1"), volume(environment))
    assert shown_hosts(environment) == {"node1": ""}
    change(environment, environment.fleet("node1", "node2"), volume(environment))
    assert (folder(environment, "node2") / MARK).exists()
    assert shown_hosts(environment) == {"node1": "", "node2": ""}
    assert "no changes" in environment.run("plan").stdout.lower()


def test_a_silent_host_keeps_no_other_from_its_volume(environment: Environment, hosts: Lab) -> None:
    """The others get the directory, the silent one is shown with its reason, and gets it later."""
    hosts.kill("node2")
    try:
        change(environment, environment.fleet("node1", "node2"), volume(environment))
        assert shown_hosts(environment) == {"node1": "", "node2": "it did not answer"}
        assert (
            "host node2 does not have its directory" in environment.run("why", "volume/data").stdout
        )
        assert "has no directory of it yet" in environment.run("plan").stdout
    finally:
        hosts.start("node2")
    environment.open_gate("one")
    serve = environment.serve(
        environment.fleet("node1", "node2"), volume(environment), environment.job("one")
    )
    environment.wait_until_host("node2", "ready")
    environment.wait_until(
        lambda: shown_hosts(environment) == {"node1": "", "node2": ""}, "the directory on node2"
    )
    environment.wait_for_done(serve, "one")
    assert (folder(environment, "node2") / MARK).exists()

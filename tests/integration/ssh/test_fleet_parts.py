"""A fleet some of whose hosts cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ssh.environment import Environment, wait_for_exit
from lab import Lab


@pytest.fixture
def environment(home: Path, hosts: Lab, tmp_path: Path) -> Iterator[Environment]:
    environment = Environment(tmp_path / "first", hosts)
    yield environment
    environment.run("controller", "stop")
    environment.close()


def test_a_fleet_works_with_the_hosts_that_answer(environment: Environment, hosts: Lab) -> None:
    """Runs start at once on the host that is there; the other one joins when it answers."""
    hosts.kill("node2")
    try:
        environment.open_gate("one")
        apply = environment.apply(environment.fleet("node1", "node2"), environment.job("one"))
        said = wait_for_exit(environment, apply)
        assert "host node2 is not ready: " in said
        assert "fleet lab works without it, and it joins when it answers" in said
        environment.check_run("one")
        assert environment.host_states() == {"node1": "ready", "node2": "unreachable"}
        assert "host node2 of fleet lab is not set up: " in environment.run("plan").stdout
        assert "node2 is unreachable" in environment.run("status").stdout
    finally:
        hosts.start("node2")
    # A background controller asks it again; nothing has to be applied once more.
    environment.wait_until_host("node2", "ready")
    assert "No changes" in environment.run("plan").stdout


def test_a_fleet_without_any_host_that_answers_fails(environment: Environment, hosts: Lab) -> None:
    """What keeps the first of them is said at once where it is refused."""
    known = environment.folder / "known_hosts"
    known.touch()
    config = Path(environment.variables()["HOME"]) / ".ssh/config"
    config.write_text(config.read_text().replace(str(hosts.known_hosts), str(known)))
    apply = environment.apply(environment.fleet("node1", "node2"), environment.job("one"))
    said = wait_for_exit(environment, apply, code=1)
    assert "host key of" in said
    assert environment.starts("one") == []


def test_a_dead_host_blocks_the_removal_of_its_fleet_until_it_is_declared_lost(
    environment: Environment, hosts: Lab
) -> None:
    """The plan says so before anything is removed, and `--lost` lets the rest go."""
    environment.open_gate("one")
    fleet = environment.fleet("node1", "node2")
    wait_for_exit(environment, environment.apply(fleet, environment.job("one")))
    serve = environment.control("serve")
    environment.wait_until_host("node2", "ready")
    hosts.kill("node2")
    try:
        environment.wait_until_host("node2", "unreachable")
        serve.terminate()
        wait_for_exit(environment, serve)
        planned = environment.run("plan", "--destroy").stdout
        assert "agents and jobs cannot be ended: those on host node2: " in planned
        assert "fleetform destroy --lost node2" in planned
        refused = environment.run("destroy", "-y", "--allow-destroy")
        assert "agents and jobs cannot be ended: those on host node2: " in refused.stdout
        assert environment.agent("node1").exists()
        done = environment.run("destroy", "-y", "--allow-destroy", "--lost", "node2")
        assert done.returncode == 0, done.stdout + done.stderr
        assert not environment.agent("node1").exists()
    finally:
        hosts.start("node2")


def test_a_host_that_died_while_no_controller_ran_blocks_the_removal(
    environment: Environment, hosts: Lab
) -> None:
    """It is asked before the plan is made; the command says for which host it waits, and what to do."""
    wait_for_exit(environment, environment.apply(environment.fleet("node1", "node2")))
    hosts.kill("node2")
    try:
        refused = environment.run("destroy", "-y", "--allow-destroy")
        assert refused.returncode == 3, refused
        assert "waiting for host node2 to answer" in refused.stderr
        assert "`fleetform destroy --lost node2`" in refused.stdout
        assert environment.agent("node1").exists()
        done = environment.run("destroy", "-y", "--allow-destroy", "--lost", "node2")
        assert done.returncode == 0, done.stdout + done.stderr
        assert not environment.agent("node1").exists()
    finally:
        hosts.start("node2")


def test_a_host_that_is_back_blocks_nothing(environment: Environment, hosts: Lab) -> None:
    """It is asked before the plan is made: no controller has run since it was silent."""
    wait_for_exit(environment, environment.apply(environment.fleet("node1")))
    serve = environment.control("serve")
    environment.wait_until_host("node1", "ready")
    hosts.kill("node1")
    try:
        environment.wait_until_host("node1", "unreachable")
        serve.terminate()
        wait_for_exit(environment, serve)
    finally:
        hosts.start("node1")
    done = environment.run("destroy", "-y", "--allow-destroy", "--lost", "node9")
    assert "no host over SSH is called node9" in done.stdout + done.stderr
    assert environment.host_states() == {"node1": "unreachable"}
    done = environment.run("destroy", "-y", "--allow-destroy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not environment.agent("node1").exists()


def test_a_host_whose_key_has_changed_is_no_host_as_declared(
    environment: Environment, hosts: Lab
) -> None:
    """`plan` says that it cannot be reached and why, and so does the plan that would remove its fleet."""
    known = environment.folder / "known_hosts"
    known.write_text(hosts.known_hosts.read_text())
    config = Path(environment.variables()["HOME"]) / ".ssh/config"
    config.write_text(config.read_text().replace(str(hosts.known_hosts), str(known)))
    wait_for_exit(environment, environment.apply(environment.fleet("node1", "node2")))
    hosts.rekey("node2")
    refused = environment.run("destroy", "-y", "--allow-destroy")
    why = "those on host node2: the host key of "
    assert f"agents and jobs cannot be ended: {why}" in refused.stdout
    assert environment.agent("node1").exists()
    serve = environment.control("serve")
    environment.wait_until_host("node2", "unreachable")
    planned = environment.run("plan").stdout
    assert "host node2 of fleet lab is unreachable: the host key of " in planned
    assert "No changes to make; 1 host unreachable." in planned
    assert why in environment.run("plan", "--destroy").stdout
    serve.terminate()
    wait_for_exit(environment, serve)
    known.write_text(hosts.known_hosts.read_text())
    done = environment.run("destroy", "-y", "--allow-destroy")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_leaving_host_that_does_not_answer_is_shown(environment: Environment, hosts: Lab) -> None:
    """`status` counts it among those that need attention, with the reason."""
    fleet = environment.fleet("node1", "node2")
    wait_for_exit(environment, environment.apply(fleet))
    hosts.kill("node2")
    try:
        environment.declare(environment.fleet("node1"))
        serve = environment.control("serve")
        shown = environment.wait_until_printed("status", text="leaving and unreachable")
        assert "! node2 is leaving and unreachable" in shown
        assert "Needs attention: host node2 is leaving and unreachable" in shown
    finally:
        hosts.start("node2")
    environment.wait_until(lambda: "node2" not in environment.host_states(), "node2 released")
    serve.terminate()
    wait_for_exit(environment, serve)


def test_one_machine_under_two_names_is_refused(environment: Environment) -> None:
    """The apply names both, and no job starts under the second name."""
    config = Path(environment.variables()["HOME"]) / ".ssh/config"
    text = config.read_text()
    block = text[text.index("Host node1\n") : text.index("Host node2\n")]
    config.write_text(text + block.replace("Host node1\n", "Host twin\n"))
    wait_for_exit(environment, environment.apply(environment.fleet("node1")))
    both = environment.apply(environment.fleet("node1", "twin"))
    said = wait_for_exit(environment, both, code=1)
    assert "host twin is the same machine as host node1 of fleet lab" in said
    assert environment.host_states() == {"node1": "ready", "twin": "unreachable"}
    # Under another name it is the same machine, and joins once the first has gone.
    environment.open_gate("one")
    renamed = environment.apply(environment.fleet("twin"), environment.job("one"))
    wait_for_exit(environment, renamed)
    environment.check_run("one")
    assert environment.host_states() == {"twin": "ready"}


def test_a_host_moves_to_another_fleet_beside_a_bad_one(environment: Environment) -> None:
    """It joins as soon as it has left the first fleet; the host without an address fails nothing."""
    first = environment.fleet("node1", "node2")
    wait_for_exit(environment, environment.apply(first))
    second = environment.fleet("node1", "node9.invalid").replace("name: lab", "name: second")
    both = environment.apply(environment.fleet("node2"), second)
    said = wait_for_exit(environment, both)
    assert "host node9.invalid is not ready: the name node9.invalid cannot be resolved" in said
    assert environment.host_states() == {"node2": "ready"}
    instances = environment.json("fleet", "show", "second")["instances"]
    assert {one["name"]: one["state"] for one in instances} == {
        "node1": "ready",
        "node9.invalid": "unreachable",
    }


def test_a_name_without_an_address_is_not_waited_for(environment: Environment) -> None:
    """The apply names the host once as the cause, and fails."""
    said = wait_for_exit(environment, environment.apply(environment.fleet("node9.invalid")), code=1)
    cause = "host node9.invalid does not answer: the name node9.invalid cannot be resolved"
    assert said.count(cause) == 1
    assert "waiting for host" not in said
    assert "host node9.invalid: " not in said


def test_an_apply_says_at_once_what_it_waits_for(environment: Environment) -> None:
    """With the reason and the longest time, while it waits."""
    output = environment.folder / "waits"
    fleet = environment.fleet("node1").replace("hosts: [node1]", "port: 9\n  hosts: [node1]")
    environment.declare(fleet)
    with output.open("wb") as file:
        waiting = environment.control_into(file, "apply", "-y")
    environment.wait_until(lambda: "waiting for host" in output.read_text(), "the notice")
    (line,) = (one for one in output.read_text().splitlines() if "waiting for host" in one)
    assert line.startswith("waiting for host node1 to answer, for up to 1m00s: ")
    assert line.endswith("cannot be reached: Connection refused")
    waiting.terminate()
    environment.finish(waiting)

"""`fleetform attach` on this machine: ports, output of all ranks, and how it ends."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import PATIENCE_SECONDS, Lab, task
from integration.ssh.test_streams import free_port, talk

FLEET = "type: fleet\nname: local\nnodes: 2\nlocal: {cpu: 8, memory: 16GB}\n"
SMALL = "resources: {cpu: 1, memory: 64MB}\n"

LISTEN = """\
exec python3 -c 'import pathlib, socket
with socket.create_server(("127.0.0.1", {port})) as server:
    pathlib.Path("{ready}").touch()
    while True:
        client, _ = server.accept()
        with client:
            while data := client.recv(65536):
                client.sendall(data.upper())'"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "lab")
    yield made
    (made.folder / "gate").touch()
    made.close()


def until_gate(lab: Lab) -> str:
    return f"until [ -e {lab.folder / 'gate'} ]; do sleep 0.1; done"


def test_ports_and_output_until_the_end(lab: Lab) -> None:
    """The declared ports are at localhost, the output of each rank says whose it is, and the exit code is the run's."""
    port, local, other = free_port(), free_port(), free_port()
    ready = lab.folder / "ready"
    listen = LISTEN.format(port=port, ready=ready)
    serve = f'[ "$FLEETFORM_NODE_RANK" = 1 ] || {{ {listen.removeprefix("exec ")} & }}'
    says = "echo hello from $FLEETFORM_NODE_RANK"
    lab.declare(
        FLEET,
        task(
            "gang", serve, says, until_gate(lab), "exit $((3 * FLEETFORM_NODE_RANK))",
            more=f'nodes: 2\nports: ["{local}:{port}", "*:{port}"]\n{SMALL}',
        ),
    )  # fmt: skip
    controller = lab.start("apply", "-y")
    lab.wait_until(ready.exists, "a program that listens")
    lab.wait_until_state("gang", "running")
    attached = lab.start("attach", "gang")

    def answers() -> bool:
        try:
            return talk(local, b"word") == b"WORD"
        except OSError:
            return False

    lab.wait_until(answers, "the forwarded port")
    assert talk(local, b"x" * 500_000) == b"X" * 500_000
    instead = lab.start("attach", "gang", "-p", f"{other}:{port}")
    lab.wait_until(lambda: _is_open(other), "another local port")
    instead.send_signal(signal.SIGINT)
    code, output = lab.finish(instead)
    assert code == 130
    assert "detached: gang continues\nhelp: `fleetform attach gang` attaches again\n" in output
    (lab.folder / "gate").touch()
    code, output = lab.finish(attached)
    assert code == 3, output
    assert f"localhost:{local} -> port {port} of gang" in output
    assert "[rank 0] hello from 0\n" in output
    assert "[rank 1] hello from 1\n" in output
    assert "gang: failed" in output
    lab.finish(controller)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_local_port_that_is_taken(lab: Lab) -> None:
    """The error names the port and the edits that help; a port of a job on this machine needs none."""
    port, ready = free_port(), lab.folder / "ready"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        local = taken.getsockname()[1]
        declared = f'ports: ["{port}", "{local}:{port}"]\n{SMALL}'
        lab.declare(FLEET, task("train", LISTEN.format(port=port, ready=ready), more=declared))
        controller = lab.start("apply", "-y")
        lab.wait_until(ready.exists, "a program that listens")
        lab.wait_until_state("train", "running")
        done = lab.run("attach", "train")
        assert done.returncode == 1
        assert f"error: port {local} of this machine is taken by another program\n" in done.stderr
        assert f':{port}"]` in the document, `"*:{port}"` for any free port, or' in done.stderr
        assert f"localhost:{port} is train: its host is this machine\n" in done.stderr
    wrong = lab.run("attach", "train", "-p", "70000")
    assert (wrong.returncode, "-p 70000 is not a port" in wrong.stderr) == (1, True)
    controller.terminate()
    lab.finish(controller)


def test_a_run_that_waits(lab: Lab) -> None:
    """Attach waits with it and says why; a port where nothing listens is said once; a stop is no success."""
    port, local = free_port(), free_port()
    big = "resources: {cpu: 3, memory: 64MB}\n"
    lab.declare(
        "type: fleet\nname: local\nlocal: {cpu: 4, memory: 16GB}\n",
        task("first", until_gate(lab), more=big),
        task("second", "echo begun; exec sleep 1000", more=f'ports: ["{local}:{port}"]\n{big}'),
    )
    controller = lab.start("apply", "-y")
    lab.wait_until_state("first", "running")
    shown = lab.folder / "shown"
    with shown.open("wb") as file:
        attached = lab.start("attach", "second", output=file)
    lab.wait_until(lambda: _is_open(local), "a local port while the run waits")
    lab.wait_until(lambda: "second waits: " in shown.read_text(), "the reason")
    (lab.folder / "gate").touch()
    lab.wait_until_state("second", "running")
    assert talk(local, b"word") == b""
    stopped = lab.run("stop", "second", "--apply", "-y")
    assert stopped.returncode == 0, stopped.stderr
    code, output = attached.wait(PATIENCE_SECONDS), shown.read_text()
    assert code == 4, output
    assert f"port {port} of the job: Connection refused" in output
    assert re.search("(?s)begun\n.*second: stopped", output), output
    again = lab.run("attach", "second")
    assert (again.returncode, "`second` is over: it is stopped" in again.stderr) == (1, True)
    controller.wait(PATIENCE_SECONDS)

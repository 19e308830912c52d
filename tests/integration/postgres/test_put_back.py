"""A database that was put back as it was before, and what tells that."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import FLEET, Lab, task
from postgres_server import PostgresServer


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server of this test alone, whose folder may be replaced."""
    server = PostgresServer()
    yield server
    server.close()
    assert server is not postgres


@pytest.fixture
def lab(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("FLEETFORM_LEDGER", server.url)
    lab = Lab(tmp_path / "lab")
    yield lab
    lab.close()


def _copy(source: Path, target: Path) -> None:
    """Replace a folder by a copy of another, with owners and times."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", source, target], check=True)


@pytest.mark.parametrize("hosts", ["hosts that remember", "hosts that were put back too"])
def test_a_database_put_back_runs_nothing_again(
    lab: Lab, server: PostgresServer, tmp_path: Path, hosts: str
) -> None:
    """This machine knows how far the ledger had come: refused until a rebuild, and nothing runs twice."""
    first, second = (task(name, lab.says(name)) for name in ("first", "second"))
    lab.declare(FLEET, first)
    assert lab.run("apply", "-y").returncode == 0
    lab.end_agents()
    server.stop("fast")
    _copy(server.data, tmp_path / "data")
    _copy(lab.state, tmp_path / "state")
    server.start()
    lab.declare(FLEET, first, second)
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["first", "second"]

    lab.end_agents()
    server.stop("fast")
    _copy(tmp_path / "data", server.data)
    remember = hosts == "hosts that remember"
    if not remember:
        _copy(tmp_path / "state", lab.state)
    server.start()
    note = Path(os.environ["FLEETFORM_CONFIG_HOME"]) / "generations" / lab.uid
    for command in ("plan", "apply -y", "serve --once"):
        done = lab.run(*command.split())
        said = done.stdout + done.stderr
        assert done.returncode == 1, (command, said)
        assert "fleetform state rebuild" in said, command
        # Once it is refused, hosts are asked as well, and what they remember is said instead.
        assert f"{note} records that ledger" in said or (remember and command != "plan"), (
            command,
            said,
        )
    done = lab.run("state", "rebuild")
    assert done.returncode == 0, done.stdout + done.stderr
    # A run without evidence is told by the exit code as well.
    assert lab.run("apply", "-y").returncode in {0, 4}
    assert lab.states() == {"first": "done", "second": "done" if remember else "unknown"}
    assert lab.said() == ["first", "second"]

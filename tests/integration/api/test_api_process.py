"""The API of a real `serve`: what is done to it reaches nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.api.conftest import Served, seconds_of_processor
from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task
from postgres_server import PASSWORD, PostgresServer

IDLE = 1500
"""Connections that somebody opens and leaves alone."""

NEVER_SECONDS = 15.0
"""How long is taken for never: a document is applied within two seconds."""

LOG_BYTES_MAX = 20_000


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Let this process have as many open sockets as it may."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def idle_connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Open connections that say nothing, each within a moment."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            opened.append(stack.enter_context(socket.socket()))
            opened[-1].settimeout(PATIENCE_SECONDS)
            opened[-1].connect(("127.0.0.1", port))
        yield opened


def is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def answers(url: str) -> bool:
    """Ask once: out of descriptors, an answer may be that the ledger cannot be read now."""
    with contextlib.suppress(OSError):
        return bool(get(url))
    return False


def get(url: str) -> object:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize("descriptors_left", [None, 24], ids=["plenty", "none-left"])
def test_idle_connections_hold_up_nothing(
    lab: Lab, served: Served, descriptors_left: int | None
) -> None:
    """A document is applied and the API answers beside 1 500 of them, also out of descriptors."""
    assert get(f"{served.root}/runs") == {"items": [], "next": None}
    if descriptors_left is not None:
        resource.prlimit(
            served.child(), resource.RLIMIT_NOFILE, (descriptors_left, descriptors_left)
        )
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with idle_connections(served.port, min(IDLE, hard - 100)):
        lab.declare(FLEET, task("short", lab.says("done")))
        served.until(lambda: "done" in lab.said(), NEVER_SECONDS)
        served.until(lambda: answers(f"{served.root}/environments/lab"))
        pids = (served.process.pid, served.child())
        before = [seconds_of_processor(pid) for pid in pids]
        lab.declare(FLEET, task("other", lab.says("again")))
        served.until(lambda: "again" in lab.said(), NEVER_SECONDS)
        used = [seconds_of_processor(pid) - was for pid, was in zip(pids, before, strict=True)]
    assert max(used) < 5, f"of serve and its API: {used}"
    assert served.log.stat().st_size < LOG_BYTES_MAX
    if descriptors_left is not None:
        assert "no connection can be accepted now: Too many open files" in served.said()


def test_a_killed_api_comes_back(lab: Lab, served: Served) -> None:
    """It costs the answers for a moment: what serve does goes on, and its log says what happened."""
    before = get(f"{served.root}/environments/lab")
    first = served.child()
    os.kill(first, signal.SIGKILL)
    # It waits in the queue of the socket, which serve has open all the time.
    after = get(f"{served.root}/environments/lab")
    assert before == after
    assert served.child() != first
    assert "the API is down: its process was ended by SIGKILL; it is started again" in (
        served.said()
    )
    assert served.process.poll() is None
    lab.declare(FLEET, task("short", lab.says("done")))
    lab.wait_until_said("done")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_api_outlives_serve(served: Served, number: signal.Signals) -> None:
    """However serve ends, the process ends with it, and the address is free."""
    get(f"{served.root}/runs")
    assert served.children()
    served.process.send_signal(number)
    served.process.wait(PATIENCE_SECONDS)
    served.until(lambda: not served.children())
    served.until(lambda: is_free(served.port))


def test_the_api_gives_way_and_says_nothing_of_the_environment(lab: Lab, served: Served) -> None:
    """Its priority is low, and what every user sees of a process has no uid in it."""
    get(f"{served.root}/runs")
    process = Path(f"/proc/{served.child()}")
    own = os.getpriority(os.PRIO_PROCESS, served.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, served.child()) == min(own + 10, 19)
    assert (process / "oom_score_adj").read_text() == "500\n"
    assert lab.uid not in (process / "cmdline").read_text()


def test_the_environment_says_which_controller_runs(lab: Lab, served: Served) -> None:
    """What drives the runs is told as it is, and its end as well."""
    lab.declare(FLEET)
    served.until(lambda: "fleet/local" in served.said())
    row = get(f"{served.root}/environments/lab")
    assert isinstance(row, dict)
    assert row["controller"]["command"] == "serve"
    assert row["controller"]["pid"] == served.process.pid
    assert not any("no controller" in note for note in row["notes"])


def test_an_api_on_postgresql(
    lab: Lab, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers the same, odd names too, and the password is in nobody's list of processes."""
    monkeypatch.setenv("FLEETFORM_LEDGER", postgres.url)
    served = Served(lab)
    lab.declare(FLEET, task("short", lab.says("done")))
    lab.wait_until_said("done")
    served.until(lambda: answers(f"{served.root}/runs/short/logs"))
    row = get(f"{served.root}/environments/lab")
    assert isinstance(row, dict)
    assert row["controller"]["pid"] == served.process.pid
    for name in ("%00", "short%00", "%ff", "..", "%2e%2e%2f"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(f"{served.root}/runs/{name}/logs")
        with refused.value as answer:
            assert answer.code in {400, 404}
    assert PASSWORD not in Path(f"/proc/{served.child()}/cmdline").read_text()
    served.process.terminate()
    assert served.process.wait(PATIENCE_SECONDS) == 0
    assert PASSWORD not in served.said()
    served.until(lambda: not served.children())


@pytest.mark.parametrize("module", ["json", "fastapi", "fleetform"])
def test_no_module_of_the_configuration_is_imported(lab: Lab, module: str) -> None:
    """Serve stands in a folder that others write to: nothing in it is executed."""
    witness = lab.folder / "imported"
    (lab.tree / f"{module}.py").write_text(f"open({str(witness)!r}, 'w').close()\n")
    served = Served(lab)
    get(f"{served.root}/runs")
    assert not witness.exists()

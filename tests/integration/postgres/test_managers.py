"""Two real managers of one environment on PostgreSQL: a paused one has a successor, and knows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forkserver import FLEETFORM, program
from leftovers import end_agents
from postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.waits

PATIENCE_SECONDS = 180.0
"""For what takes up to twenty: a machine that does much else takes ten times as long."""

TREE = {
    "fleet.yaml": "type: fleet\nname: pair\nnodes: 1\nlocal: {cpu: 4, memory: 8GB}\n",
    "many.yaml": """\
type: task
name: many
array: 1-12
commands:
  - echo "start $FLEETFORM_RUN_NAME" >> "$WITNESS"
  - sleep 3
  - while [ -e "$HOLD" ]; do sleep 0.1; done
  - echo "end $FLEETFORM_RUN_NAME" >> "$WITNESS"
env:
  WITNESS: {witness}
  HOLD: {witness}.hold
fleets: [pair]
resources: {cpu: 1}
""",
}


class Site:
    """
    A tree, a state folder and a database; processes that are ended with the test.

    No run comes to its end while there is the file `hold`.
    """

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.witness = folder / "witness"
        self.witness.touch()
        self.hold = folder / "witness.hold"
        self.uid = f"a{os.urandom(16).hex()[1:]}"
        environment = f"type: environment\nname: pair\nuid: {self.uid}\n"
        (self.tree / "environment.yaml").write_text(environment)
        for name, text in TREE.items():
            (self.tree / name).write_text(text.replace("{witness}", str(self.witness)))
        self.environment = {
            **os.environ,
            "FLEETFORM_STATE_HOME": str(folder / "state"),
            "FLEETFORM_LEDGER": server.url,
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / name).open("wb") as output:
            process = subprocess.Popen(
                [FLEETFORM, *arguments],
                cwd=self.tree,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._started.append(process)
        return process

    def said(self, name: str) -> str:
        return (self.folder / name).read_text(errors="replace")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program(), *arguments],
            cwd=self.tree,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
        end_agents(self.folder / "state")


@pytest.fixture
def site(tmp_path: Path, postgres: PostgresServer) -> Iterator[Site]:
    site = Site(tmp_path, postgres)
    yield site
    site.close()


def until(done: Callable[[], bool], site: Site) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        said = "\n".join(f"{name}: {site.said(name)}" for name in ("first", "second")
                         if (site.folder / name).exists())  # fmt: skip
        assert time.monotonic() < end, said
        time.sleep(0.1)


@pytest.mark.crash
def test_a_paused_manager_causes_nothing(site: Site) -> None:
    """Its successor takes over after a term; when it goes on it says so, watches, and does no harm."""
    first = site.start("first", "apply", "-y")
    until(lambda: "start" in site.witness.read_text(), site)
    os.kill(first.pid, signal.SIGSTOP)
    second = site.start("second", "apply", "-y")
    until(lambda: site.witness.read_text().count("start") >= 9, site)
    os.kill(first.pid, signal.SIGCONT)
    assert second.wait(PATIENCE_SECONDS) == 0, site.said("second")
    assert first.wait(PATIENCE_SECONDS) == 0, site.said("first")
    assert "lost the manager lease" in site.said("first")
    starts = Counter(line for line in site.witness.read_text().splitlines() if "start" in line)
    assert len(starts) == 12
    assert set(starts.values()) == {1}
    events = site.run("events").stdout
    # Before the pause, at the takeover, and by nobody else: but on a machine that lets nobody run
    # for half a term whoever manages loses its lease so, too, says it, and may take it again.
    lost = sum(site.said(name).count("lost the manager lease") for name in ("first", "second"))
    assert 2 <= events.count("manager.changed") <= 1 + lost, events


def test_a_manager_that_is_asked_to_end_gives_its_lease_back(site: Site) -> None:
    """With SIGTERM as with Ctrl-C: the next one need not wait for the lease's own end."""
    site.hold.touch()
    process = site.start("first", "apply", "-y")
    until(lambda: "start" in site.witness.read_text(), site)
    refused = site.run("lock", "break")
    assert refused.returncode == 6
    assert f"(pid {process.pid} on " in refused.stderr
    assert "has the manager lease of this environment, which expires in " in refused.stderr
    assert "no process is ended" in refused.stderr
    process.terminate()
    assert process.wait(PATIENCE_SECONDS) == 130, site.said("first")
    assert "interrupted: nothing is lost" in site.said("first")
    held = json.loads(site.run("lock", "list", "--json").stdout)
    holders = [one["command"] for one in held if one["uid"] == site.uid[:8]]
    assert holders == ["background controller"], site.said("first")


def test_a_background_controller_gives_its_lease_up_when_it_is_asked(site: Site) -> None:
    """The request stands in the database: the next apply need not wait for the lease's own end."""
    site.hold.touch()
    done = site.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    first = json.loads(site.run("controller", "show", "--json").stdout)
    assert first["kind"] == "background"
    apply = site.start("first", "apply", "-y")
    until(
        lambda: f'"pid": {apply.pid},' in site.run("controller", "show", "--json").stdout,
        site,
    )
    until(lambda: not Path(f"/proc/{first['pid']}").exists(), site)
    site.hold.unlink()
    assert apply.wait(PATIENCE_SECONDS) == 0, site.said("first")
    starts = Counter(line for line in site.witness.read_text().splitlines() if "start" in line)
    assert set(starts.values()) == {1}
    assert len(starts) == 12


def test_a_background_controller_that_does_not_answer_loses_its_lease(site: Site) -> None:
    """It was stopped: its term ends, the apply goes on, and it ends when it goes on itself."""
    site.hold.touch()
    done = site.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    pid = json.loads(site.run("controller", "show", "--json").stdout)["pid"]
    os.kill(pid, signal.SIGSTOP)
    apply = site.start("first", "apply", "-y")
    waits = "waiting for the background controller of"
    until(lambda: waits in site.said("first"), site)
    site.hold.unlink()
    assert apply.wait(PATIENCE_SECONDS) == 0, site.said("first")
    os.kill(pid, signal.SIGCONT)
    until(lambda: not Path(f"/proc/{pid}").exists(), site)
    starts = Counter(line for line in site.witness.read_text().splitlines() if "start" in line)
    assert set(starts.values()) == {1}


def test_who_follows_says_when_it_goes_on_itself(site: Site) -> None:
    """After `kill -9` of the manager, once its lease has ended."""
    site.hold.touch()
    first = site.start("first", "apply", "-y")
    until(lambda: "start" in site.witness.read_text(), site)
    second = site.start("second", "apply", "-y")
    follows = f"apply (pid {first.pid}) manages this environment and applies the plan"
    until(lambda: follows in site.said("second"), site)
    first.kill()
    site.hold.unlink()
    assert second.wait(PATIENCE_SECONDS) == 0, site.said("second")
    gone = f"apply (pid {first.pid}) no longer manages this environment; this command continues"
    assert gone in site.said("second")


def test_no_secret_is_left_behind(site: Site) -> None:
    """The ledger's password is in no file of the state, no output and no process's arguments."""
    process = site.start("first", "apply", "-y")
    seen = b""
    while process.poll() is None:
        for path in Path("/proc").glob("[0-9]*"):
            try:
                seen += (path / "cmdline").read_bytes()
                if b"agent" in (path / "cmdline").read_bytes():
                    environment = (path / "environ").read_bytes()
                    assert str(site.folder).encode() not in environment or (
                        PASSWORD.encode() not in environment
                    )
            except OSError:
                continue
        time.sleep(0.5)
    assert process.returncode == 0, site.said("first")
    assert PASSWORD.encode() not in seen
    outputs = [
        site.run(*arguments) for arguments in (["ps"], ["plan"], ["events"], ["why", "many"])
    ]
    assert all(PASSWORD not in done.stdout + done.stderr for done in outputs)
    site.environment["FLEETFORM_LEDGER"] = site.environment["FLEETFORM_LEDGER"].replace(
        f"{PASSWORD}@", f"{PASSWORD}-wrong@"
    )
    refused = site.run("plan")
    assert refused.returncode == 1
    assert "refuses this user" in refused.stderr
    assert PASSWORD not in refused.stdout + refused.stderr
    files = [path for path in site.folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_the_address_may_stand_in_a_file(site: Site) -> None:
    """A file that only its owner reads does as well; one that others can read is refused."""
    file = site.folder / "address"
    file.write_text(site.environment.pop("FLEETFORM_LEDGER") + "\n")
    site.environment["FLEETFORM_LEDGER_FILE"] = str(file)
    file.chmod(0o644)
    refused = site.run("plan")
    assert refused.returncode == 1
    assert f"chmod 600 {file}" in refused.stderr
    file.chmod(0o600)
    (site.tree / "many.yaml").unlink()
    assert site.run("apply", "-y").returncode == 0
    assert "No changes" in site.run("plan").stdout
    site.environment["FLEETFORM_LEDGER"] = "postgresql://elsewhere/x"
    assert "unset one of them" in site.run("plan").stderr


@pytest.mark.crash
def test_serve_outlives_a_server_that_is_away(tmp_path: Path, postgres: PostgresServer) -> None:
    """Away for longer than a lease, it is waited for; then serve manages again, and by itself."""
    server = PostgresServer()
    assert server is not postgres
    site = Site(tmp_path, server)
    try:
        serving = site.start("first", "serve")
        until(lambda: "start" in site.witness.read_text(), site)
        server.stop("immediate")
        until(lambda: "waiting until the ledger is available" in site.said("first"), site)
        server.start()
        until(lambda: site.said("first").count("serving pair from") >= 2, site)
        until(lambda: site.witness.read_text().count("end") == 12, site)
        starts = Counter(line for line in site.witness.read_text().splitlines() if "start" in line)
        assert set(starts.values()) == {1}
        assert site.said("first").count("waiting until the ledger is available") == 1, site.said(
            "first"
        )
        serving.terminate()
        assert serving.wait(PATIENCE_SECONDS) == 0, site.said("first")
    finally:
        site.close()
        server.close()

"""Jobs of this machine are paused for an emergency, and none is left paused."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetform.agents.host import processes
from fleetform.app.emergency import PausedJobs

PATIENCE_SECONDS = 60.0


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Supervised:
    """A job's directory as its supervisor keeps it, and a process that stands for the job."""

    def __init__(self, hosts: Path, run: str) -> None:
        folder = hosts / "instance" / "jobs" / run
        folder.mkdir(parents=True)
        self.supervisor = subprocess.Popen(
            ["sh", "-c", "sleep 1000 & wait"],
            env={**os.environ, "FLEETFORM_RUN_NAME": run},
            start_new_session=True,
        )
        self._started = (folder / "started").open("w+")
        self._started.write(f"{{}}\n{self.supervisor.pid}\n")
        self._started.flush()
        fcntl.flock(self._started, fcntl.LOCK_EX)
        wait_until(lambda: len(processes.descendants(self.supervisor.pid)) == 1)
        (self.job,) = processes.descendants(self.supervisor.pid)
        wait_until(lambda: processes.command_line(self.job)[0] == b"sleep")

    @property
    def is_paused(self) -> bool:
        return processes.state(self.job) == "T"

    def close(self) -> None:
        os.killpg(self.supervisor.pid, signal.SIGKILL)
        self.supervisor.wait()
        self._started.close()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[list[Supervised]]:
    found = [Supervised(tmp_path / "hosts", run) for run in ("hungry", "other")]
    yield found
    for one in found:
        one.close()


def test_others_go_on_before_those_that_are_to_end(jobs: list[Supervised], tmp_path: Path) -> None:
    """One that is to end goes on once it is signalled; its supervisor is never paused."""
    hungry, other = jobs
    paused = PausedJobs()
    paused.pause(tmp_path / "hosts", spared=[os.getpid()])
    assert hungry.is_paused
    assert other.is_paused
    assert processes.state(hungry.supervisor.pid) != "T"
    paused.resume(but=["hungry"])
    wait_until(lambda: not other.is_paused)
    assert hungry.is_paused
    os.kill(hungry.job, signal.SIGTERM)
    asyncio.run(paused.resume_when_signalled())
    wait_until(lambda: processes.is_over(hungry.job))
    paused.close()


def test_what_is_spared_or_was_stopped_already_is_left_alone(
    jobs: list[Supervised], tmp_path: Path
) -> None:
    """A command may be typed within a job, and a person may have stopped one."""
    hungry, other = jobs
    os.kill(hungry.job, signal.SIGSTOP)
    wait_until(lambda: hungry.is_paused)
    paused = PausedJobs()
    paused.pause(tmp_path / "hosts", spared=[os.getpid(), other.job])
    assert not other.is_paused
    paused.close()
    assert hungry.is_paused


def test_jobs_go_on_when_the_command_is_killed(jobs: list[Supervised], tmp_path: Path) -> None:
    """Also by SIGKILL, which lets it clean up nothing."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from fleetform.app.emergency import PausedJobs\n"
        "paused = PausedJobs(); paused.pause(Path(sys.argv[1]), spared=[]); time.sleep(1000)"
    )
    command = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "hosts")])
    wait_until(lambda: all(one.is_paused for one in jobs))
    command.kill()
    command.wait()
    wait_until(lambda: not any(one.is_paused for one in jobs))

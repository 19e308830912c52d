"""What a test leaves running is found and ended, however little a process says of itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from leftovers import end_agents, processes_naming

STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True);"
    " signal.pause()"
)
"""What a job does that traps SIGTERM: only SIGKILL ends it."""


@pytest.fixture(params=["command line", "environment", "folder"])
def process(request, tmp_path) -> Iterator[subprocess.Popen[str]]:
    """A process that names the folder of the test in one way only."""
    work = tmp_path / "state" / "hosts" / "job"
    work.mkdir(parents=True)
    ways = {
        "command line": {"args": [str(work)]},
        "environment": {"env": {"TMPDIR": str(work)}},
        "folder": {"cwd": work},
    }
    how = ways[request.param]
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", STUBBORN, *how.pop("args", [])],
        stdout=subprocess.PIPE, text=True, start_new_session=True, **{"cwd": "/", "env": {}, **how},
    )  # fmt: skip
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
        started.kill()


def test_a_process_of_a_test_is_found_and_ended(process, tmp_path) -> None:
    """By its command line, by its environment, or by the folder that it works in."""
    assert processes_naming(tmp_path / "state") == [process.pid]
    assert processes_naming(tmp_path / "stat") == []
    end_agents(tmp_path / "state")
    assert process.wait() < 0

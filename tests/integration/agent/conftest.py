"""Agents for these tests; each ends with its test, by the ids it was started with."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.agent.rig import Agent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "agent"


@pytest.fixture
def stopped(root: Path) -> Iterator[Agent]:
    """An agent that has not been started yet."""
    agent = Agent(root)
    yield agent
    agent.close()


@pytest.fixture
def agent(stopped: Agent) -> Agent:
    """An agent that runs."""
    stopped.start()
    return stopped


@pytest.fixture
def hidden() -> Iterator[list[int]]:
    """Pids of what a test has hidden; ended with it, should the agent fail to."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

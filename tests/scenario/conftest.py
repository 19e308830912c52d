"""What the scenarios share: commands that start fast."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def fast(program: Path) -> None:
    """Start commands from one process: a scenario types up to thirty."""

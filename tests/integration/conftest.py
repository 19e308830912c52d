"""What the integration tests share: commands that start fast."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def fast(program: Path) -> None:
    """Start commands from one process: a test gives up to twenty."""

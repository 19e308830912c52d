"""A lab for each test; its background controller ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path / "lab")
    yield lab
    lab.close()

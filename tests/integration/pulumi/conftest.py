"""A folder of items for the real engine."""

from __future__ import annotations

import pytest

from pulumi_shelf import Shelf


@pytest.fixture
def shelf(tmp_path) -> Shelf:
    return Shelf(tmp_path)

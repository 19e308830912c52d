"""What both simulations share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet_memory() -> Iterator[None]:
    """
    Look for garbage once a test, which plays many seeds, and not within one.

    Looking through all that is imported again and again takes a quarter of a seed of apply.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()

"""A stretch of a command in which nobody looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fleetform.wiring.unswept import unswept


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """The process of the tests goes on for long."""
    yield
    gc.unfreeze()


def test_nothing_is_searched_within_and_nothing_of_it_later() -> None:
    """It is off within, on again afterwards, and what was made is left out of every search."""
    assert gc.isenabled()
    with unswept():
        assert not gc.isenabled()
        made: list[list[int]] = [[]]
    assert gc.isenabled()
    assert all(one is not made for one in gc.get_objects())


def test_an_error_ends_it_too() -> None:
    """A tree that cannot be read does not leave the process without a search."""
    with pytest.raises(ValueError, match="broken"), unswept():
        raise ValueError("broken")
    assert gc.isenabled()


def test_who_had_it_off_keeps_it_off() -> None:
    """It is nobody's place to turn on what the caller has turned off."""
    gc.disable()
    try:
        with unswept():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

"""When a silent connection counts as dead."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol.link import Pulse


def test_silence_for_two_intervals_is_the_end() -> None:
    """The interval in which the connection began counts as one in which it lived."""
    pulse = Pulse()
    assert [pulse.is_dead() for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("every", [1, 2])
def test_a_connection_that_says_something_lives(every: int) -> None:
    """One heartbeat that comes late does not end it."""
    pulse = Pulse()
    for interval in range(40):
        if interval % every == 0:
            pulse.hear()
        assert not pulse.is_dead()

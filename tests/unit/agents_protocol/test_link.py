"""When a silent connection counts as dead."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol.link import WINDOW_MAX_BYTES, WINDOW_MIN_BYTES, Pulse, Window


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


class TestWindow:
    """A sender that keeps its window full, over a line of a given rate and round trip."""

    @staticmethod
    def run(rate: float, round_trip: float, total: int) -> tuple[Window, float, float]:
        """Send `total` bytes; returns the window, the time, and the longest queue in seconds."""
        window, now, free_at, sent, worst = Window(), 0.0, 0.0, 0, 0.0
        credited: list[tuple[float, int]] = []
        while sent < total or credited:
            while sent < total and window.has_room:
                size = window.piece_bytes
                window.send(size, now)
                sent += size
                free_at = max(free_at, now) + size / rate
                credited.append((free_at + round_trip, size))
                worst = max(worst, free_at - now)
            now, size = credited.pop(0)
            window.take(size, now)
        return window, now, worst

    @pytest.mark.parametrize("rate", [75_000, 125_000, 1_250_000, 5_000_000])
    def test_half_a_second_is_under_way(self, rate: float) -> None:
        """And the line is never idle for it."""
        window, took, worst = self.run(rate, 0.02, rate * 20)
        assert worst <= 0.75
        assert took < 20 * 1.25
        assert window.limit <= rate

    def test_it_grows_to_its_maximum(self) -> None:
        """On a line that carries more than that in half a second."""
        window, took, _ = self.run(200e6, 0.002, 400_000_000)
        assert window.limit == WINDOW_MAX_BYTES
        assert took < 4

    def test_it_follows_a_line_that_becomes_slower(self) -> None:
        """A few pieces are enough to know."""
        window = Window()
        now = 0.0
        for rate in (10e6, 100e3):
            for _ in range(40):
                size = window.piece_bytes
                window.send(size, now)
                now += size / rate
                window.take(size, now)
        assert window.limit <= 50_000

    def test_more_credit_than_was_sent_counts_for_nothing(self) -> None:
        """What the other end says wrongly cannot open the window."""
        window = Window()
        window.take(1 << 30, 1.0)
        window.send(WINDOW_MIN_BYTES, 2.0)
        assert not window.has_room

"""Who leaves has what was asked to end told to the hosts first, and names those that are silent."""

from __future__ import annotations

from fleetform.app.apply import STOPS_MS, STOPS_NOTICE_MS, Stops

ONE, TWO = ("one", "pool-0"), ("two", "pool-1")


class Leaving:
    """Somebody who would leave, by a clock that a test sets."""

    def __init__(self) -> None:
        self.at_ms = 5
        self.notices: list[str] = []
        self.stops = Stops(clock=self, notice=self.notices.append)

    def boot_ms(self) -> int:
        return self.at_ms

    def now_ms(self) -> int:
        raise AssertionError("a clock that can be set has nothing to say of how long it was")


def test_nobody_stays_for_hosts_that_owe_nothing() -> None:
    """Most applies ask nothing to end."""
    leaving = Leaving()
    assert leaving.stops.are_sent(())
    assert (leaving.stops.left(), leaving.notices) == ((), [])


def test_a_host_that_owes_an_answer_is_waited_for_and_let_go() -> None:
    """It is named after a moment, and once more at the end, with what that means for the work."""
    leaving = Leaving()
    assert not leaving.stops.are_sent((ONE,))
    leaving.at_ms += STOPS_NOTICE_MS
    assert not leaving.stops.are_sent((ONE,))
    assert not leaving.stops.are_sent((ONE,))
    assert leaving.notices == ["waiting for host pool-0 to accept the stop of one"]
    leaving.at_ms += STOPS_MS
    assert leaving.stops.are_sent((ONE,))
    (message,) = leaving.stops.left()
    assert message.startswith("one is asked to stop, and host pool-0 did not answer: ")


def test_each_answer_is_a_sign_of_life() -> None:
    """A thousand stops take longer than one; what is owed still has all of its time again."""
    leaving = Leaving()
    assert not leaving.stops.are_sent((ONE, TWO))
    leaving.at_ms += STOPS_MS - 1
    assert not leaving.stops.are_sent((TWO,))
    leaving.at_ms += STOPS_MS - 1
    assert not leaving.stops.are_sent((TWO,))
    assert "hosts" not in leaving.notices[-1]
    assert leaving.stops.are_sent(())
    assert leaving.stops.left() == ()

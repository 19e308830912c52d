"""What is in force is said once, and so is its end."""

from __future__ import annotations

from fleetform.controllers.announced import Announced
from fleetform.model.override import Override, OverrideKind

PAUSE = Override(3, OverrideKind.PAUSE, "", "full", "ada@node1", 0, until_ms=5000)


class Heard:
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str, **_about: object) -> None:
        self.notices.append(text)


def test_an_override_is_announced_once() -> None:
    """However often the rows are read, people are told once."""
    heard = Heard()
    announced = Announced(heard)
    announced.tell([], now_ms=0)
    for now_ms in (0, 1, 4999):
        announced.tell([PAUSE], now_ms=now_ms)
    assert heard.notices == [
        "in force: emergency pause by ada@node1: full (until 1970-01-01T00:00:05Z)"
    ]


def test_its_end_is_said_whether_it_was_lifted_or_ran_out() -> None:
    """No process writes a row when time is up; the end follows from the clock."""
    for left, now_ms in (([], 100), ([PAUSE], 5000)):
        heard = Heard()
        announced = Announced(heard)
        announced.tell([PAUSE], now_ms=0)
        announced.tell(left, now_ms=now_ms)
        announced.tell(left, now_ms=now_ms)
        assert heard.notices[1:] == ["ended: emergency pause by ada@node1"]

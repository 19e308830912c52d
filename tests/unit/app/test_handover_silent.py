"""Whether whoever manages acts: a hung one is told from one that is busy, and said once."""

from __future__ import annotations

from types import SimpleNamespace

from fleetform.app.handover import ACTS_MS, PickUpWatch
from fleetform.model.leadership import Holder

SERVE = Holder(7, "serve", "serve", 0, "node1")


class Beside:
    """An apply `mine` that was left to somebody, by a clock that a test sets."""

    def __init__(self, oldest: str = "mine", state: str = "planned") -> None:
        self.at_ms = 0
        self.taken_up = PickUpWatch("mine", clock=self)
        self._oldest, self._state = oldest, state

    def boot_ms(self) -> int:
        return self.at_ms

    def now_ms(self) -> int:
        raise AssertionError("how long it was is no matter of the time of day")

    def unfinished_apply(self):
        return SimpleNamespace(apply_uid=self._oldest), b""

    def read_operations(self, uid: str):
        assert uid == "mine"
        return (SimpleNamespace(state=self._state),)

    def complaint(self, holder: Holder | None = SERVE) -> str:
        return self.taken_up.complaint(self, holder)


def test_silence_is_counted_from_the_last_commit_and_told_once() -> None:
    """Whoever writes is alive, whatever they write."""
    beside = Beside()
    assert not beside.taken_up.is_due(1)
    beside.at_ms = ACTS_MS
    assert not beside.taken_up.is_due(2)
    beside.at_ms += ACTS_MS + 1
    assert beside.taken_up.is_due(2)
    assert beside.complaint().startswith(
        "serve (pid 7 on node1) has not started to apply this plan"
    )
    assert not beside.taken_up.is_due(2)


def test_who_is_busy_is_not_told_to_hang() -> None:
    """With this plan, with another's before it, or with what is no plan."""
    assert Beside().complaint()
    assert Beside(state="intended").complaint() == ""
    assert Beside(oldest="another").complaint() == ""
    assert Beside().complaint(None) == ""
    assert Beside().complaint(Holder(7, "ada", "emergency stop", 0, "node1")) == ""

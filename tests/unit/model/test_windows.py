"""When a freeze window is open, and what it holds."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Action, Change, Reason, Step
from fleetform.model.windows import is_held, loosened, next_spell, open_spell, spell_at
from fleetform.spec.desired import FreezeWindow, ResourceKey, Rules

ONCE = FreezeWindow("holidays", begin=100, end=200)
WEEKEND = FreezeWindow("weekend", cron="0 18 * * fri", duration=60 * 3600, timezone="Europe/Berlin")


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("now_ms", "is_open"), [(99_999, False), (100_000, True), (199_999, True), (200_000, False)]
)
def test_a_window_is_open_from_its_begin_until_before_its_end(now_ms: int, is_open: bool) -> None:
    """The first moment belongs to it, the last does not."""
    assert (spell_at(ONCE, now_ms) is not None) == is_open


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-06-26T17:59:59.999+02:00", ""),
        ("2026-06-26T18:00:00+02:00", "2026-06-29T06:00:00+02:00"),
        ("2026-06-29T05:59:59.999+02:00", "2026-06-29T06:00:00+02:00"),
        ("2026-06-29T06:00:00+02:00", ""),
        # The clocks go back in that night: sixty hours are sixty hours.
        ("2026-10-25T12:00:00+01:00", "2026-10-26T05:00:00+01:00"),
    ],
)
def test_a_recurring_window_is_of_its_time_zone(now: str, end: str) -> None:
    """It begins by the clocks of the place that it names, summer and winter."""
    spell = spell_at(WEEKEND, at(now))
    assert (spell.end_ms if spell else None) == (at(end) if end else None)


def test_the_next_time_is_told() -> None:
    """Of a window that recurs there is always one; of one that was, none."""
    spell = next_spell(WEEKEND, at("2026-06-26T18:00:00+02:00"))
    assert spell is not None
    assert spell.begin_ms == at("2026-07-03T18:00:00+02:00")
    assert next_spell(ONCE, 99_999) == spell_at(ONCE, 100_000)
    assert next_spell(ONCE, 100_000) is None


@given(st.integers(min_value=0, max_value=4_000_000_000_000))
def test_at_each_moment_a_window_is_open_or_will_be(now_ms: int) -> None:
    """What is open holds the moment; what comes next begins behind it."""
    spell, after = spell_at(WEEKEND, now_ms), next_spell(WEEKEND, now_ms)
    assert spell is None or spell.begin_ms <= now_ms < spell.end_ms
    assert after is not None
    assert after.begin_ms > now_ms


def test_of_several_the_one_that_holds_most_is_named() -> None:
    """One for all changes before one for what destroys, and then the last to end."""
    narrow = FreezeWindow("narrow", begin=0, end=900, only="destructive")
    short = FreezeWindow("short", begin=0, end=300)
    spell = open_spell(Rules(freeze=(narrow, short, ONCE)), (), 150_000)
    assert spell is not None
    assert spell.window is short


def test_a_thaw_opens_them_while_it_holds() -> None:
    """And no longer."""
    thaw = Override(1, OverrideKind.THAW, "", "wrong year", "ada", 0, until_ms=160_000)
    rules = Rules(freeze=(ONCE,))
    assert open_spell(rules, [thaw], 159_999) is None
    assert open_spell(rules, [thaw], 160_000) is not None


@pytest.mark.parametrize(
    ("after", "paths"),
    [
        (Rules(), ("rules.freeze",)),
        (Rules(freeze=(ONCE,), allow_destroy=True), ("rules.allow_destroy",)),
        (Rules(freeze=(ONCE,), delete_percent=11), ("rules.delete_percent",)),
        (Rules(freeze=(ONCE,), delete_count=6), ("rules.delete_count",)),
        (Rules(freeze=(FreezeWindow("holidays", begin=100, end=199),)), ("rules.freeze",)),
        (Rules(freeze=(FreezeWindow("other words", begin=100, end=200),)), ()),
        (Rules(freeze=(WEEKEND, ONCE), delete_count=0, delete_percent=0), ()),
    ],
)
def test_what_allows_more_is_told_from_what_allows_less(
    after: Rules, paths: tuple[str, ...]
) -> None:
    """A window that goes or is another loosens; its reason is for people."""
    assert loosened(Rules(freeze=(ONCE,)), after) == paths


def test_only_what_tightens_the_rules_goes_through() -> None:
    """Whatever the window holds otherwise, it holds the commit that takes it away."""
    applied = Rules(freeze=(ONCE, FreezeWindow("n", begin=0, end=1000, only="destructive")))
    key = ResourceKey("environment", "lab")
    for number in range(2):
        spell = spell_at(applied.freeze[number], 150_000)
        assert spell is not None
        for after, held in ((Rules(), True), (Rules(delete_count=1, freeze=applied.freeze), False)):
            step = Step("rules.set", "rules.set", key, (), {"rules": after.document()})
            change = Change(
                key, Action.UPDATE, (Reason.CONTROL_CHANGED,), "environment", steps=(step,)
            )
            assert is_held(spell, change, applied) == held

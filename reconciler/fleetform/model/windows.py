"""
Freeze windows: whether one is open now, until when, and which changes it holds.

A plan is judged by the windows last applied. What loosens a rule is held by each of them, or the
commit that takes a window away would be the way through it; who has to get through it says so by
an override, with a reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from fleetform.model.override import Override, OverrideKind
from fleetform.model.verbs import Verb
from fleetform.spec.desired import FreezeWindow, Rules

if TYPE_CHECKING:
    from fleetform.model.plan import Change

__all__ = ["Spell", "is_held", "loosened", "next_spell", "open_spell", "spell_at"]


@dataclass(frozen=True, slots=True)
class Spell:
    """One time that a window is open; Unix milliseconds."""

    window: FreezeWindow
    begin_ms: int
    end_ms: int


def open_spell(rules: Rules, overrides: Iterable[Override], now_ms: int) -> Spell | None:
    """
    Return the open window that holds most: one for all changes, and of several the last to end.

    None where no window is open, or where an override has thawed them.
    """
    if any(one.kind is OverrideKind.THAW and one.holds_at(now_ms) for one in overrides):
        return None
    spells = (spell for window in rules.freeze if (spell := spell_at(window, now_ms)))
    return max(
        spells,
        key=lambda one: (one.window.only == "all", one.end_ms, one.window.reason),
        default=None,
    )


def spell_at(window: FreezeWindow, now_ms: int) -> Spell | None:
    """Return the time of the window that `now_ms` lies in."""
    if window.begin is not None and window.end is not None:
        begin_ms, end_ms = window.begin * 1000, window.end * 1000
        return Spell(window, begin_ms, end_ms) if begin_ms <= now_ms < end_ms else None
    # The last that began ends last, since all are equally long. A millisecond later, because the
    # way back leaves out the moment that it starts from.
    for begin in _starts(window, now_ms + 1, reverse=True):
        begin_ms = int(begin.timestamp()) * 1000
        if begin_ms <= now_ms:
            end_ms = begin_ms + window.duration * 1000
            return Spell(window, begin_ms, end_ms) if now_ms < end_ms else None
    return None


def next_spell(window: FreezeWindow, now_ms: int) -> Spell | None:
    """Return the first time of the window that begins after `now_ms`; None: there is none."""
    if window.begin is not None and window.end is not None:
        begin_ms = window.begin * 1000
        return Spell(window, begin_ms, window.end * 1000) if now_ms < begin_ms else None
    for begin in _starts(window, now_ms, reverse=False):
        begin_ms = int(begin.timestamp()) * 1000
        if begin_ms > now_ms:
            return Spell(window, begin_ms, begin_ms + window.duration * 1000)
    return None


def _starts(window: FreezeWindow, from_ms: int, *, reverse: bool) -> Iterator[dt.datetime]:
    # Hardly any environment has windows, and each plan would pay for the imports.
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    moment = dt.datetime.fromtimestamp(-(-from_ms // 1000), ZoneInfo(window.timezone))
    yield from CronSim(window.cron, moment, reverse=reverse)


def is_held(spell: Spell, change: Change, applied: Rules) -> bool:
    """Tell whether an open window keeps a change from being carried out."""
    if change.key.kind == "environment":
        # What only tightens may always be had.
        return any(
            loosened(applied, Rules.of(step.arguments["rules"]))
            for step in change.steps
            if step.verb == Verb.RULES_SET
        )
    return spell.window.only == "all" or change.destructive


def loosened(before: Rules, after: Rules) -> tuple[str, ...]:
    """Name the rules that allow more in `after` than in `before`, as paths in the document."""
    found = []
    if after.allow_destroy and not before.allow_destroy:
        found.append("rules.allow_destroy")
    if after.delete_percent > before.delete_percent:
        found.append("rules.delete_percent")
    if after.delete_count > before.delete_count:
        found.append("rules.delete_count")
    kept = [_times(window) for window in after.freeze]
    if any(_times(window) not in kept for window in before.freeze):
        found.append("rules.freeze")
    return tuple(found)


def _times(window: FreezeWindow) -> dict[str, object]:
    """When it holds and what: its reason is for people."""
    return {name: value for name, value in asdict(window).items() if name != "reason"}

"""What `serve` says about a configuration that it cannot apply as it is, at the length of a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fleetform.model.notice import LogLevel, Notice
from fleetform.views.reasons import HELD_BY, blocked_text

if TYPE_CHECKING:
    from fleetform.model.plan import Held
    from fleetform.spec.findings import Finding

__all__ = ["LINES_MAX", "NOTHING_CHANGES", "held_notices", "mistake_notices", "not_planned"]

LINES_MAX = 20
"""Of one kind: a log is not the place for thousands."""

_MOVING = "file-changed"

_INVALID = "document.invalid"
_BLOCKED = "change.blocked"

NOTHING_CHANGES = Notice("nothing changes", "what was applied last stays in force", event=_INVALID)
"""Follows the problems of a configuration that is not planned."""


def not_planned(problem: str) -> tuple[Notice, ...]:
    """Say why the configuration is not planned at all."""
    return (
        Notice("not planned", problem, "the configuration is planned again", event="plan.failed",
               level=LogLevel.ERROR),
        NOTHING_CHANGES,
    )  # fmt: skip


def mistake_notices(errors: Iterable[Finding]) -> tuple[Notice, ...]:
    """
    Say what is wrong with the configuration, one notice for each error.

    Files that change while they are read are a checkout in progress: one notice, and they are read
    again.
    """
    found: list[Notice] = []
    moving = 0
    for one in errors:
        if one.code == _MOVING:
            moving += 1
            continue
        place = f"{one.place.file}:{one.place.line}" if one.place.line else one.place.file
        found.append(
            Notice(
                # Without the line: an edit above moves the error, and it is the same one.
                key=f"{one.place.file}:{one.code}:{one.address}:{one.detail}",
                text=f"{place}: {one.summary}: {one.detail}".rstrip(": "),
                over=f"{one.place.file}: no longer: {one.summary}: {one.detail}".rstrip(": "),
                event=_INVALID,
                details={"file": one.place.file, "line": str(one.place.line), "code": one.code},
            )
        )
    first = _first(found, _INVALID, "wrong: `fleetform validate`")
    if not moving:
        return first
    files = "a file" if moving == 1 else f"{moving} files"
    text = f"{files} changed while the configuration was read: it is read again"
    return (Notice("moving", text, event=_INVALID, level=LogLevel.INFO), *first)


def held_notices(held: Iterable[Held]) -> tuple[Notice, ...]:
    """Say which changes a plan blocks and what would unblock them, one notice for each."""
    found = [
        Notice(
            key=f"{one.change.key}:{one.by}",
            text=f"blocked: {one.change.key}: {blocked_text(HELD_BY[one.by], one.detail)};"
            f" {one.cure}".rstrip("; "),
            over=f"no longer blocked: {one.change.key}: {HELD_BY[one.by]}",
            event=_BLOCKED,
            details={"resource": str(one.change.key), "blocked_by": one.by.value},
        )
        for one in held
    ]
    return _first(found, _BLOCKED, "blocked: `fleetform plan`")


def _first(found: list[Notice], event: str, rest: str) -> tuple[Notice, ...]:
    left = len(found) - LINES_MAX
    more = Notice("more", f"and {left} more {rest} shows all", event=event)
    return (*found[:LINES_MAX], *([more] if left > 0 else []))

"""What `serve` says of a tree that it cannot carry out as it is, at a length that a log can bear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fleetform.views.reasons import HELD_BY

if TYPE_CHECKING:
    from fleetform.model.plan import Held
    from fleetform.spec.findings import Finding

LINES_MAX = 20
"""Of one kind: all are said again when one of them goes, and nobody reads thousands."""

_MOVING = "file-changed"


def mistake_notices(errors: Iterable[Finding]) -> tuple[str, ...]:
    """
    Say what is wrong with the tree, a sentence each.

    Files that come and go while they are read are a checkout at work: one sentence, and another
    look follows, because they have changed.
    """
    lines: list[str] = []
    moving = 0
    for one in errors:
        if one.code == _MOVING:
            moving += 1
            continue
        place = f"{one.place.file}:{one.place.line}" if one.place.line else one.place.file
        lines.append(f"{place}: {one.summary}: {one.detail}".rstrip(": "))
    told = _first(lines, "wrong: `fleetform validate`")
    if not moving:
        return told
    files = "a file" if moving == 1 else f"{moving} files"
    return (f"{files} changed while the tree was read: it is read again", *told)


def held_notices(held: Iterable[Held]) -> tuple[str, ...]:
    """Say which changes a plan blocks and what would unblock them, a sentence each."""
    lines = [
        f"blocked: {one.change.key}: {HELD_BY[one.by]}: {one.detail}; {one.cure}".rstrip("; ")
        for one in held
    ]
    return _first(lines, "blocked: `fleetform plan`")


def _first(lines: list[str], rest: str) -> tuple[str, ...]:
    left = len(lines) - LINES_MAX
    return (*lines[:LINES_MAX], *([f"and {left} more {rest} shows all"] if left > 0 else []))

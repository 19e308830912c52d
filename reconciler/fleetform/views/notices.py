"""What `serve` says about a configuration that it cannot apply as it is, at the length of a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fleetform.model.figures import counted
from fleetform.model.history import LogLevel, Notice
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Finding, Level
from fleetform.views.reasons import HELD_BY, blocked_text

if TYPE_CHECKING:
    from fleetform.model.plan import Held
    from fleetform.spec.desired import Declared, Loaded
    from fleetform.spec.findings import Finding


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


# Which warnings a command prints whole, and one line for the others.
# A warning about a document that a plan does not change was read when that document was reviewed. It
# stays in `fleetform validate`.


class Warnings(NamedTuple):
    """`whole` are to be printed as they are; `rest` counts the others and the notes, or is empty."""

    whole: tuple[Finding, ...]
    rest: str


def split_warnings(loaded: Loaded, changed: Iterable[ResourceKey], by: str = "") -> Warnings:
    """
    Split the warnings of a configuration into those about changed documents and the others.

    Args:
        loaded: The configuration and its findings.
        changed: Resources that a plan or an edit changes; an element stands for its sweep.
        by: What changes them, `plan` or `edit`; empty where nothing is changed.
    """
    warnings = [one for one in loaded.findings if one.level is Level.WARNING]
    whole = tuple(_about(warnings, loaded, frozenset(changed))) if warnings else ()
    others = counted(len(warnings) - len(whole), "warning")
    notes = counted(sum(one.level is Level.NOTE for one in loaded.findings), "note")
    where = f" in documents that this {by} does not change" if by else ""
    counts = (f"{others}{where}", notes)
    return Warnings(whole, ", ".join(one for one in counts if not one.startswith("0 ")))


def _about(
    warnings: Iterable[Finding], loaded: Loaded, changed: frozenset[ResourceKey]
) -> Iterable[Finding]:
    """Choose the warnings about `changed`; one about no resource may be about any of them."""
    if not changed or loaded.desired is None:
        return
    desired = loaded.desired
    declared = (*desired.resources.values(), *(one.declared for one in desired.beyond.values()))
    is_changed: dict[str, bool] = {}
    for one in declared:
        address = _address(one)
        keys = {one.key, ResourceKey(one.key.kind, one.parent or one.key.name)}
        is_changed[address] = is_changed.get(address, False) or not keys.isdisjoint(changed)
    for warning in warnings:
        if is_changed.get(".".join(warning.address.split(".")[:2]), True):
            yield warning


def _address(declared: Declared) -> str:
    """The first two parts of a finding's address: `task.train`."""
    return f"{declared.type}.{declared.parent or declared.key.name}"

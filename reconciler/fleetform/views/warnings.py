"""
Which warnings a command prints whole, and one line for the others.

A warning about a document that a plan does not change was read when that document was reviewed. It
stays in `fleetform validate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fleetform.model.figures import counted
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Finding, Level

if TYPE_CHECKING:
    from fleetform.spec.desired import Declared, Loaded

__all__ = ["Warnings", "split_warnings"]


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

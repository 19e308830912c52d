"""
The words that a field's row is made of: its class, what a change of it does, who carries it out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class FieldClass(enum.StrEnum):
    """What a change of the field means to something that is already there."""

    EXECUTION = "execution"
    """Another execution, or another object: it is part of the execution's digest."""
    CONTROL = "control"
    """How it is driven: changes in place at any time, also while it runs."""
    COSMETIC = "cosmetic"
    """What people read: only the record changes."""


class OnChange(enum.StrEnum):
    """What carrying out a change of the field amounts to."""

    RERUN = "rerun"
    """In place while it waits; held while it runs; run again once it has finished."""
    REPLACE = "replace"
    """The object is made anew: it cannot be turned into what is wanted."""
    UPDATE = "update"
    """In place, without ending anything that runs."""
    RECORD = "record"
    """Nothing outside the ledger."""
    IDENTITY = "identity"
    """Not a change: another name is another resource."""


class Row(NamedTuple):
    """
    One field's facts.

    Attributes:
        carried_out_by: The room that acts on it; empty while none does.
        unit: That of the canonical integer; empty where the value is not a quantity.
        essential: Says what happens while nobody carries the field out. True: the resource would
            be something else without it, so a plan holds it back. False: it goes on without.
        sensitive: What it says is shown to nobody: a plan has a version of it in its stead.
    """

    field_class: FieldClass
    on_change: OnChange
    carried_out_by: str
    unit: str = ""
    essential: bool = True
    sensitive: bool = False


Rows: TypeAlias = Mapping[str, Row]
"""By the field's path in the document: `resources.gpu.count`."""


def execution(carried_out_by: str = "", unit: str = "", *, essential: bool = True) -> Row:
    """A field that makes another execution."""
    return Row(FieldClass.EXECUTION, OnChange.RERUN, carried_out_by, unit, essential)


def control(carried_out_by: str = "", unit: str = "", *, essential: bool = True) -> Row:
    """A field that changes in place at any time."""
    return Row(FieldClass.CONTROL, OnChange.UPDATE, carried_out_by, unit, essential)


def replaced(carried_out_by: str = "", unit: str = "", *, essential: bool = True) -> Row:
    """A field of an object that has to be made anew for another value."""
    return Row(FieldClass.EXECUTION, OnChange.REPLACE, carried_out_by, unit, essential)


def secret(facts: Row) -> Row:
    """The same field, with a value that nobody is shown."""
    return facts._replace(sensitive=True)


def identity(carried_out_by: str = "plan") -> Row:
    """A field that says which resource it is."""
    return Row(FieldClass.EXECUTION, OnChange.IDENTITY, carried_out_by)


RECORDED = Row(FieldClass.COSMETIC, OnChange.RECORD, "store")

EVERY_KIND: Rows = {
    "type": identity(),
    "name": identity(),
    "description": RECORDED,
    "tags": control("store"),
    "protect": control("plan"),
    "ignore": control("plan"),
    "initial": control("plan"),
}
"""What every kind has."""

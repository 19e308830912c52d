"""
Facts of a field: its class, what a change of it does, what implements it, its unit and default.

They stand at the field, in the annotations of the models:

    shell: Annotated[str | None, execution("agents.host", default="sh")] = None

A field of a part inherits the facts of the field that holds the part, and says only what differs.
A unit belongs to the type, such as `Duration`, and is said there once. `field_table_generator` gathers
all of this into `field_table`, which plans read in place of the models: importing those takes a
third of the time of a plan that changes nothing.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeAlias

Default: TypeAlias = str | int | bool | None


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
    """The object is recreated: it cannot be changed in place."""
    UPDATE = "update"
    """In place, without ending anything that runs."""
    HOSTS = "hosts"
    """The hosts of the fleet are replaced one after the other, as its `update` says."""
    UNFIT_HOSTS = "unfit-hosts"
    """The same, but for hosts that the fleet could create now: those stay."""
    NEW_HOSTS = "new-hosts"
    """In place; a host keeps what it was created by, and only later ones are created otherwise."""
    RECORD = "record"
    """Nothing outside the ledger."""
    IDENTITY = "identity"
    """Not a change: another name is another resource."""


class Row(NamedTuple):
    """
    One field's facts.

    Attributes:
        supported_by: The room that acts on it; empty while none does.
        unit: That of the canonical integer; empty where the value is not a quantity.
        essential: Says what happens while nobody carries the field out. True: the resource would
            be something else without it, so a plan holds it back. False: it goes on without.
        sensitive: What it says is shown to nobody: a plan has a version of it in its stead.
        default: What not saying the field amounts to, for the schema and the reference. It is
            never put into a document or a digest, so that other defaults in a later version rerun
            nothing.
    """

    field_class: FieldClass
    on_change: OnChange
    supported_by: str
    unit: str = ""
    essential: bool = True
    sensitive: bool = False
    default: Default = None


def execution(supported_by: str = "", *, essential: bool = True, default: Default = None) -> Row:
    """A field that makes another execution."""
    return Row(
        FieldClass.EXECUTION,
        OnChange.RERUN,
        supported_by,
        essential=essential,
        default=default,
    )


def control(supported_by: str = "", *, essential: bool = True, default: Default = None) -> Row:
    """A field that changes in place at any time."""
    return Row(
        FieldClass.CONTROL,
        OnChange.UPDATE,
        supported_by,
        essential=essential,
        default=default,
    )


def of_hosts(
    supported_by: str, on_change: OnChange = OnChange.HOSTS, *, default: Default = None
) -> Row:
    """A field of a fleet by which its hosts are created; the fleet stays."""
    return Row(FieldClass.CONTROL, on_change, supported_by, default=default)


def replaced(supported_by: str = "", *, default: Default = None) -> Row:
    """A field of an object that must be recreated for another value."""
    return Row(FieldClass.EXECUTION, OnChange.REPLACE, supported_by, default=default)


def identity(supported_by: str = "plan") -> Row:
    """A field that says which resource it is."""
    return Row(FieldClass.EXECUTION, OnChange.IDENTITY, supported_by)


RECORDED = Row(FieldClass.COSMETIC, OnChange.RECORD, "store")


class PerKind(NamedTuple):
    """The facts of a field that documents of several kinds have, by kind."""

    rows: tuple[tuple[str, Row], ...]  # no mapping, since a union hashes its annotations


def per_kind(**rows: Row) -> PerKind:
    """
    Facts that differ between kinds: `per_kind(run=execution(), fleet=control())`.

    Within a part, kinds that are not named inherit the facts of the part.
    """
    return PerKind(tuple(rows.items()))


class Detail(NamedTuple):
    """What a type, or a field of a part, adds to the facts around it."""

    unit: str = ""
    sensitive: bool = False
    default: Default = None
    supported_by: str | None = None


UNSUPPORTED = Detail(supported_by="")
"""Nothing implements this field of a part, whatever implements the others."""

SECRET = Detail(sensitive=True)
"""The field's text is a secret."""


def supported_by(module: str) -> Detail:
    """Another module acts on this field of a part than on the others."""
    return Detail(supported_by=module)


def unit(name: str) -> Detail:
    """The unit of the canonical integer: `bytes`, `millicores`, `seconds`, `percent`."""
    return Detail(unit=name)


def default(value: Default) -> Detail:
    """What not saying a field of a part amounts to."""
    return Detail(default=value)


Facts: TypeAlias = Row | PerKind | Detail

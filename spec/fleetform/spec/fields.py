"""
What each field is: its class, what a change of it does, what carries it out, its unit.

The one table behind the diff's wording, the digest of an execution, the schema's `x-on-change`
and the reference. A field is named by its path in the document, `resources.gpu.count`; a path
that has no row of its own is answered by the nearest row above it, so `env.LR` is `env`.
Rows name paths of the canonical form as well as of the spelling people write: a plan compares
the first, an editor completes the second. `tests/house` proves that each model field has a row.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping
from typing import NamedTuple


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

    `carried_out_by` names the room that acts on it; `unit` is that of the canonical integer,
    empty where the value is not a quantity.
    """

    field_class: FieldClass
    on_change: OnChange
    carried_out_by: str
    unit: str = ""


_Rows = Mapping[str, Row]


def _execution(carried_out_by: str, unit: str = "") -> Row:
    return Row(FieldClass.EXECUTION, OnChange.RERUN, carried_out_by, unit)


def _control(carried_out_by: str, unit: str = "") -> Row:
    return Row(FieldClass.CONTROL, OnChange.UPDATE, carried_out_by, unit)


def _identity(carried_out_by: str = "plan") -> Row:
    return Row(FieldClass.EXECUTION, OnChange.IDENTITY, carried_out_by)


_RECORDED = Row(FieldClass.COSMETIC, OnChange.RECORD, "store")

# What every kind has.
_EVERY_KIND: _Rows = {
    "type": _identity(),
    "name": _identity(),
    "description": _RECORDED,
    "tags": _control("store"),
    "protect": _control("plan"),
}

_GPU: _Rows = {
    "gpu.memory": _execution("schedule", "bytes"),
    "gpu.count": _execution("schedule"),
}

_RUN: _Rows = {
    **_EVERY_KIND,
    "commands": _execution("agents.host"),
    "shell": _execution("agents.host"),
    "env": _execution("agents.host"),
    "working_dir": _execution("agents.host"),
    "runtime": _execution("agents.host"),
    "files": _execution("agents.host"),
    "files.size": _execution("agents.host", "bytes"),
    "volumes": _execution("agents.host"),
    "resources": _execution("schedule"),
    "resources.cpu": _execution("schedule", "millicores"),
    "resources.memory": _execution("schedule", "bytes"),
    "resources.disk": _execution("schedule", "bytes"),
    "resources.shm_size": _execution("agents.host", "bytes"),
    **{f"resources.{path}": row for path, row in _GPU.items()},
    "nodes": _execution("schedule"),
    "fleets": _execution("schedule"),
    # An element's own values. Adding one to the document adds an element and changes no other.
    "index": _execution("agents.host"),
    "matrix": _execution("agents.host"),
    "array": _identity("spec.expand"),
    "key": _identity("spec.expand"),
    "priority": _control("schedule"),
    "max_duration": _control("agents.host", "seconds"),
    "stop_duration": _control("agents.host", "seconds"),
    "checkpoint": _control("agents.host"),
    "checkpoint.lead": _control("agents.host", "seconds"),
    "retry": _control("lifecycle"),
    "retry.duration": _control("lifecycle", "seconds"),
    "retry.delay": _control("lifecycle", "seconds"),
    "depends_on": _control("lifecycle"),
    "concurrency": _control("schedule"),
    "state": _control("lifecycle"),
    "on_change": _control("plan"),
    "rerun": _control("plan"),
}

_FLEET: _Rows = {
    **_EVERY_KIND,
    "nodes": _control("providers"),
    "local": _control("providers.local"),
    "local.cpu": _control("providers.local", "millicores"),
    "local.memory": _control("providers.local", "bytes"),
    "local.disk": _control("providers.local", "bytes"),
    "local.gpu.memory": _control("providers.local", "bytes"),
    "sharing": _control("schedule"),
    "blocks": _control("schedule"),
}

_REPLACED = Row(FieldClass.EXECUTION, OnChange.REPLACE, "providers")

_VOLUME: _Rows = {
    **_EVERY_KIND,
    "fleet": _REPLACED,
    "path": _REPLACED,
    "deletion_policy": _control("apply"),
}

_ENVIRONMENT: _Rows = {
    "type": _identity(),
    "name": _RECORDED,
    "uid": _identity("store"),
    "rules": _control("plan"),
    "rules.delete_percent": _control("plan", "percent"),
}

ROWS: Mapping[str, _Rows] = {
    "environment": _ENVIRONMENT,
    "fleet": _FLEET,
    "run": _RUN,
    "volume": _VOLUME,
}

DEFAULTS: Mapping[str, Mapping[str, str | int | bool]] = {
    "environment": {
        "rules.allow_destroy": False,
        "rules.delete_percent": 10,
        "rules.delete_count": 5,
    },
    "fleet": {"nodes": 1, "sharing": "exact"},
    "run": {
        "shell": "sh",
        "nodes": 1,
        "priority": 0,
        "stop_duration": "10s",
        "runtime": "process",
        "state": "running",
        "on_change": "hold",
        "rerun": 0,
        "volumes.read_only": False,
        "depends_on.each": False,
    },
    "volume": {"deletion_policy": "retain"},
}
"""
What not saying a field amounts to, by kind: for the schema and the reference. It is never put
into a document or a digest, so that other defaults in a later version rerun nothing.
"""

# `type:` of a document to the kind whose rows hold for it.
_KIND_OF_TYPE = {"task": "run"}

# A ledger may hold a document of another version with a field that this one has never heard of.
# Taking it for an execution field shows the change at its worst, and hides nothing.
_UNKNOWN = Row(FieldClass.EXECUTION, OnChange.RERUN, "")

# `files[0].sha256`, `volumes.1.path`: positions in lists say nothing about the field.
_POSITION = re.compile(r"\[[^\]]*\]|(?<=\.)\d+(?=\.|$)")


@functools.lru_cache(maxsize=4096)
def row(kind: str, path: str) -> Row:
    """
    The facts of the field at `path`, from the nearest row at or above it.

    Args:
        kind: A resource's kind, or a document's `type:`.
        path: Dotted; positions in lists are passed over.
    """
    rows = ROWS.get(_KIND_OF_TYPE.get(kind, kind), {})
    parts = [part for part in _POSITION.sub("", path).split(".") if part]
    for length in range(len(parts), 0, -1):
        found = rows.get(".".join(parts[:length]))
        if found is not None:
            return found
    return _UNKNOWN


def field_class(kind: str, path: str) -> str:
    """`execution`, `control` or `cosmetic`."""
    return row(kind, path).field_class


def on_change(kind: str, path: str) -> str:
    """What a change does: `rerun`, `replace`, `update`, `record` or `identity`."""
    return row(kind, path).on_change


def unit(kind: str, path: str) -> str:
    """The unit of the canonical integer: `bytes`, `millicores`, `seconds`, `percent`, or empty."""
    return row(kind, path).unit


def carried_out_by(kind: str, path: str) -> str:
    """The room that acts on the field; empty for a field that this version does not know."""
    return row(kind, path).carried_out_by


EXECUTION_FIELDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(
        path
        for path, facts in rows.items()
        if facts.field_class is FieldClass.EXECUTION
        and facts.on_change is not OnChange.IDENTITY
        and "." not in path
    )
    for kind, rows in ROWS.items()
}
"""Top-level canonical fields that make up an execution's digest, by kind."""

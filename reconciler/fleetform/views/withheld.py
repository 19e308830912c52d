"""
What is not shown to those who read the state and perhaps not the tree: the values of `env`.

People put tokens there, whatever the manual says. The command line shows them, since it reads
the tree itself; the API does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.plan import Change, FieldChange, Plan

WITHHELD = "(withheld)"


def withhold_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical document with the names in `env` and without their values."""
    if "env" not in document:
        return dict(document)
    return {**document, "env": _values(document["env"])}


def withhold_plan(plan: Plan) -> Plan:
    """
    Return the plan to be shown. It is no longer the one that its digest is of.

    Steps keep their arguments: views do not show those.
    """
    return replace(
        plan,
        changes=tuple(_change(change) for change in plan.changes),
        held=tuple(replace(held, change=_change(held.change)) for held in plan.held),
    )


def _change(change: Change) -> Change:
    return replace(change, fields=tuple(_field(one) for one in change.fields))


def _field(one: FieldChange) -> FieldChange:
    if one.path != "env" and not one.path.startswith(("env.", "env[")):
        return one
    return replace(one, before=_values(one.before), after=_values(one.after))


def _values(value: Any) -> Any:
    if value is None:
        return None
    return dict.fromkeys(value, WITHHELD) if isinstance(value, Mapping) else WITHHELD

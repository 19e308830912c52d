"""
What is not shown to those who read the state and perhaps not the tree: the values of `env`.

People put tokens there, whatever the manual says. The command line shows them, since it reads
the tree itself; the API does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.plan import Change, FieldChange, Plan, Step
from fleetform.spec.fields.secrecy import names_secret

WITHHELD = "(withheld)"


def withhold_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical document without the values of `env` and of secrets in `matrix`."""
    shown = dict(document)
    if "env" in document:
        shown["env"] = _values(document["env"])
    if isinstance(matrix := document.get("matrix"), Mapping):
        shown["matrix"] = {
            name: WITHHELD if names_secret(name) else value for name, value in matrix.items()
        }
    return shown


def withhold_plan(plan: Plan) -> Plan:
    """Return the plan to be shown. It is no longer the one that its digest is of."""
    return replace(
        plan,
        changes=tuple(_change(change) for change in plan.changes),
        held=tuple(replace(held, change=_change(held.change)) for held in plan.held),
        deferred=tuple(replace(one, change=_change(one.change)) for one in plan.deferred),
    )


def _change(change: Change) -> Change:
    return replace(
        change,
        fields=tuple(_field(one) for one in change.fields),
        before=None if change.before is None else withhold_document(change.before),
        after=None if change.after is None else withhold_document(change.after),
        steps=tuple(_step(step) for step in change.steps),
    )


def _step(step: Step) -> Step:
    """The document of a step is what the change leads to."""
    document = step.arguments.get("document")
    if document is None:
        return step
    return replace(step, arguments={**step.arguments, "document": withhold_document(document)})


def _field(one: FieldChange) -> FieldChange:
    if one.path != "env" and not one.path.startswith(("env.", "env[")):
        return one
    return replace(one, before=_values(one.before), after=_values(one.after))


def _values(value: Any) -> Any:
    if value is None:
        return None
    return dict.fromkeys(value, WITHHELD) if isinstance(value, Mapping) else WITHHELD

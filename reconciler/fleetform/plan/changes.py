"""Changes as kinds propose them, with what each takes from the document and from the ledger's row."""

from __future__ import annotations

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, FieldChange, Reason, Step
from fleetform.plan.diff import set_fields
from fleetform.spec.desired import Declared


def creation(declared: Declared, *steps: Step) -> Change:
    """Return the change that creates what has no row."""
    return Change(
        key=declared.key,
        action=Action.CREATE,
        reasons=(Reason.ABSENT,),
        type=declared.type,
        fields=set_fields(declared.key.kind, declared.document),
        steps=steps,
        parent=declared.parent,
        element=declared.element,
    )


def change_between(
    row: LiveResource,
    declared: Declared,
    action: Action,
    reasons: tuple[Reason, ...],
    fields: tuple[FieldChange, ...],
    *steps: Step,
    destructive: bool = False,
    at_stake: str = "",
) -> Change:
    """Return a change that moves a row to a document; `fields` are what differs."""
    return Change(
        key=declared.key,
        action=action,
        reasons=reasons,
        type=declared.type,
        fields=fields,
        steps=steps,
        uid=row.uid,
        generation=row.generation,
        parent=declared.parent,
        element=declared.element,
        destructive=destructive,
        at_stake=at_stake,
    )


def change_of_row(
    row: LiveResource,
    action: Action,
    reason: Reason,
    *steps: Step,
    destructive: bool = False,
    at_stake: str = "",
) -> Change:
    """Return a change of what has no document, or whose document stays as it is."""
    return Change(
        key=row.key,
        action=action,
        reasons=(reason,),
        type=row.type,
        steps=steps,
        uid=row.uid,
        generation=row.generation,
        parent=row.parent,
        element=row.element,
        destructive=destructive,
        at_stake=at_stake,
    )

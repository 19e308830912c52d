"""
A queue: the name of some fleets, which runs wait in. Only the ledger knows it.

A change is in force for whatever still waits, from the next round of scheduling on. It ends nothing, so
neither a change nor the removal is destructive; a run that refers to a queue keeps it.
"""

from __future__ import annotations

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Permissions, Reason
from fleetform.model.verbs import Verb
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import (
    Proposal,
    declared_arguments,
    make_step,
    propose_change_of,
    propose_change_of_row,
    propose_creation,
    reasons_of,
)
from fleetform.spec.desired import Declared


def propose_create(declared: Declared) -> Proposal:
    return propose_creation(
        declared, make_step(Verb.QUEUE_SET, declared.key, declared_arguments(declared))
    )


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    changed = changed_fields("queue", row.parsed, declared.document)
    if not changed:
        return None
    return propose_change_of(
        row,
        declared,
        Action.UPDATE,
        reasons_of(changed),
        changed,
        make_step(Verb.QUEUE_SET, declared.key, declared_arguments(declared)),
    )


def propose_remove(row: LiveResource) -> Proposal:
    return propose_change_of_row(
        row, Action.DELETE, Reason.REMOVED, make_step(Verb.QUEUE_REMOVE, row.key, {})
    )

"""
A queue: the name of some fleets, which runs wait in. Only the ledger knows it.

A change is in force for whatever still waits, from the next round of scheduling on. It ends nothing, so
neither a change nor the removal is destructive; a run that refers to a queue keeps it.
"""

from __future__ import annotations

import json

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, Permissions, Reason
from fleetform.plan.diff import changed_fields, set_fields
from fleetform.plan.proposal import Proposal
from fleetform.plan.reasons import reasons_of
from fleetform.plan.steps import declared_arguments, make_step
from fleetform.spec.desired import Declared


def propose_create(declared: Declared) -> Proposal:
    return Proposal(
        Change(
            key=declared.key,
            action=Action.CREATE,
            reasons=(Reason.ABSENT,),
            type=declared.type,
            fields=set_fields("queue", declared.document),
            steps=(make_step("queue.set", declared.key, declared_arguments(declared)),),
        )
    )


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    changed = changed_fields("queue", json.loads(row.document), declared.document)
    if not changed:
        return None
    return Proposal(
        Change(
            key=declared.key,
            action=Action.UPDATE,
            reasons=reasons_of(changed),
            type=declared.type,
            fields=changed,
            steps=(make_step("queue.set", declared.key, declared_arguments(declared)),),
            uid=row.uid,
            generation=row.generation,
        )
    )


def propose_remove(row: LiveResource) -> Proposal:
    return Proposal(
        Change(
            key=row.key,
            action=Action.DELETE,
            reasons=(Reason.REMOVED,),
            type=row.type,
            steps=(make_step("queue.remove", row.key, {}),),
            uid=row.uid,
            generation=row.generation,
        )
    )

"""
A volume: moving it makes another one.

What becomes of the data is said by the policy last applied: a commit that brings
`deletion_policy: delete` along with the removal does not destroy what was to be kept until then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, Permissions, Reason, Step
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
            fields=set_fields("volume", declared.document),
            steps=(make_step("volume.make", declared.key, _arguments(declared)),),
        )
    )


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Update in place, unless a changed field makes it another volume."""
    before = json.loads(row.document)
    changed = changed_fields("volume", before, declared.document)
    if not changed:
        return None
    moved = any(one.forces for one in changed)
    if moved:
        # Both must say `delete`: the policy may have been changed in either direction.
        kept = not (_deletes(before) and _deletes(declared.document))
        old = _drop(row, before, kept=kept)
        steps: tuple[Step, ...] = (
            old,
            make_step("volume.make", declared.key, _arguments(declared), (old.key,)),
        )
        at_stake = _at_stake(before, kept=kept)
    else:
        steps = (make_step("volume.update", declared.key, _arguments(declared)),)
        at_stake = ""
    return Proposal(
        Change(
            key=declared.key,
            action=Action.REPLACE if moved else Action.UPDATE,
            reasons=reasons_of(changed),
            type=declared.type,
            fields=changed,
            steps=steps,
            uid=row.uid,
            generation=row.generation,
            destructive=moved,
            at_stake=at_stake,
        )
    )


def propose_remove(row: LiveResource) -> Proposal:
    """Forget the volume and leave its data, or remove both where its policy says so."""
    document = json.loads(row.document)
    kept = not _deletes(document)
    return Proposal(
        Change(
            key=row.key,
            action=Action.FORGET if kept else Action.DELETE,
            reasons=(Reason.REMOVED,),
            type=row.type,
            steps=(_drop(row, document, kept=kept),),
            uid=row.uid,
            generation=row.generation,
            destructive=not kept,
            at_stake=_at_stake(document, kept=kept),
        )
    )


def _drop(row: LiveResource, document: Mapping[str, Any], *, kept: bool) -> Step:
    return make_step("volume.forget" if kept else "volume.remove", row.key, _where(document))


def _arguments(declared: Declared) -> dict[str, Any]:
    return {**declared_arguments(declared), **_where(declared.document)}


def _where(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"fleet": document.get("fleet", ""), "path": document.get("path", "")}


def _deletes(document: Mapping[str, Any]) -> bool:
    return bool(document.get("deletion_policy", "retain") == "delete")


def _at_stake(document: Mapping[str, Any], *, kept: bool) -> str:
    where = f"{document.get('path', '')} on fleet {document.get('fleet', '')}"
    return f"nothing: its data stays in {where}" if kept else f"all data in {where}"

"""
A volume: moving it makes another one.

What becomes of the data is said by the policy last applied: a commit that brings
`deletion_policy: delete` along with the removal does not destroy what was to be kept until then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, FieldChange, HeldBy, Permissions, Reason, Step
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
    if any(one.forces for one in changed):
        return _replaced(declared, row, before, changed, reasons_of(changed))
    return Proposal(
        Change(
            key=declared.key,
            action=Action.UPDATE,
            reasons=reasons_of(changed),
            type=declared.type,
            fields=changed,
            steps=(make_step("volume.update", declared.key, _arguments(declared)),),
            uid=row.uid,
            generation=row.generation,
        )
    )


def _replaced(
    declared: Declared,
    row: LiveResource,
    before: Mapping[str, Any],
    changed: tuple[FieldChange, ...],
    reasons: tuple[Reason, ...],
) -> Proposal:
    """Another volume in the place of this one."""
    # Both must say `delete`: the policy may have been changed in either direction.
    kept = not (_deletes(before) and _deletes(declared.document))
    old = _drop(row, before, kept=kept)
    return Proposal(
        Change(
            key=declared.key,
            action=Action.REPLACE,
            reasons=reasons,
            type=declared.type,
            fields=changed,
            steps=(old, make_step("volume.make", declared.key, _arguments(declared), (old.key,))),
            uid=row.uid,
            generation=row.generation,
            destructive=True,
            at_stake=_at_stake(before, kept=kept),
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


def propose_renew(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Another volume in its place, which is empty: only where the policy lets the data go."""
    before = json.loads(row.document)
    changed = changed_fields("volume", before, declared.document)
    proposal = _replaced(
        declared, row, before, changed, (Reason.REPLACE_ASKED, *reasons_of(changed))
    )
    if (_deletes(before) and _deletes(declared.document)) or _where(before) != _where(
        declared.document
    ):
        return proposal
    return Proposal(
        proposal.change,
        HeldBy.PROTECTION,
        f"its data is kept, so what is made anew in {before.get('path', '')} would not be new",
        "apply `deletion_policy: delete` first, or give it another path",
    )


def propose_forget(row: LiveResource) -> Proposal:
    """Whatever its policy says: the data stays."""
    document = json.loads(row.document)
    return Proposal(
        Change(
            key=row.key,
            action=Action.FORGET,
            reasons=(Reason.LET_GO,),
            type=row.type,
            steps=(_drop(row, document, kept=True),),
            uid=row.uid,
            generation=row.generation,
            at_stake=_at_stake(document, kept=True),
        )
    )


def propose_adopt(declared: Declared) -> Proposal:
    """The directory is there, with whatever is in it, and becomes this volume."""
    made = propose_create(declared).change
    step = make_step("volume.adopt", declared.key, _arguments(declared))
    return Proposal(replace(made, action=Action.ADOPT, reasons=(Reason.FOUND,), steps=(step,)))


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

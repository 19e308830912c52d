"""
A fleet: everything about it changes in place.

A host is taken away only once nothing runs on it, so fewer nodes end no work. Removing the
fleet as a whole takes its hosts, and is destructive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, Permissions, Reason
from fleetform.plan.diff import changed_fields, set_fields
from fleetform.plan.proposal import Proposal
from fleetform.plan.reasons import reasons_of
from fleetform.plan.steps import declared_arguments, make_step
from fleetform.spec.desired import Declared


def propose_create(declared: Declared) -> Proposal:
    step = make_step("fleet.make", declared.key, _arguments(declared))
    return Proposal(
        Change(
            key=declared.key,
            action=Action.CREATE,
            reasons=(Reason.ABSENT,),
            type=declared.type,
            fields=set_fields("fleet", declared.document),
            steps=(step,),
        )
    )


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    changed = changed_fields("fleet", json.loads(row.document), declared.document)
    if not changed:
        return None
    step = make_step("fleet.update", declared.key, _arguments(declared))
    return Proposal(
        Change(
            key=declared.key,
            action=Action.UPDATE,
            reasons=reasons_of(changed),
            type=declared.type,
            fields=changed,
            steps=(step,),
            uid=row.uid,
            generation=row.generation,
        )
    )


def propose_remove(row: LiveResource) -> Proposal:
    nodes = _nodes_wanted(json.loads(row.document))
    hosts = "1 host" if nodes == 1 else f"{nodes} hosts"
    return Proposal(
        Change(
            key=row.key,
            action=Action.DELETE,
            reasons=(Reason.REMOVED,),
            type=row.type,
            steps=(make_step("fleet.remove", row.key, {}),),
            uid=row.uid,
            generation=row.generation,
            destructive=True,
            at_stake=f"{hosts} and whatever still runs there",
        )
    )


def propose_renew(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Let all hosts go and make them anew."""
    removal = propose_remove(row).change
    (remove,) = removal.steps
    changed = changed_fields("fleet", json.loads(row.document), declared.document)
    return Proposal(
        Change(
            key=declared.key,
            action=Action.REPLACE,
            reasons=(Reason.REPLACE_ASKED, *reasons_of(changed)),
            type=declared.type,
            fields=changed,
            steps=(
                remove,
                make_step("fleet.make", declared.key, _arguments(declared), (remove.key,)),
            ),
            uid=row.uid,
            generation=row.generation,
            destructive=True,
            at_stake=removal.at_stake,
        )
    )


def propose_forget(row: LiveResource) -> Proposal:
    """Hosts stay up, with their agents; nobody here knows them any more."""
    return Proposal(
        Change(
            key=row.key,
            action=Action.FORGET,
            reasons=(Reason.LET_GO,),
            type=row.type,
            steps=(make_step("fleet.forget", row.key, {}),),
            uid=row.uid,
            generation=row.generation,
        )
    )


def propose_adopt(declared: Declared) -> Proposal:
    """Hosts of this environment that no fleet has become this one's; the rest is made."""
    made = propose_create(declared).change
    step = make_step("fleet.adopt", declared.key, _arguments(declared))
    return Proposal(replace(made, action=Action.ADOPT, reasons=(Reason.FOUND,), steps=(step,)))


def _arguments(declared: Declared) -> dict[str, Any]:
    name = declared.key.name
    return {
        **declared_arguments(declared),
        # Numbered from 0 and named by number, so that the instances of two plans are the same.
        "instances": [
            _place(f"{name}-{number}", number, declared.document)
            for number in range(_nodes_wanted(declared.document))
        ],
    }


def _place(name: str, number: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """One host that is wanted; `drained` says why nothing more is to be placed on it."""
    place: dict[str, Any] = {"name": name, "number": number}
    for entry in document.get("drain", ()):
        if name in entry.get("hosts", (name,)):
            place["drained"] = entry["reason"]
    return place


def _nodes_wanted(document: dict[str, Any] | Any) -> int:
    """How many hosts the fleet shall have now; one when the document does not say."""
    nodes = document.get("nodes")
    if nodes is None:
        return 1
    wanted = nodes.get("target")
    return int(nodes.get("min") or 0 if wanted is None else wanted)

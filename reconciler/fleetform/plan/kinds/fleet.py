"""
A fleet: it changes in place, and its hosts one after the other where they have to be others.

A host is taken away only once nothing runs on it, so fewer nodes end no work, and neither does
another template, unless `update` says `recreate`. Removing the fleet as a whole takes its hosts,
and is destructive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleetform.model.figures import counted
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Permissions, Reason, Step
from fleetform.model.verbs import Verb
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import (
    Proposal,
    change_between,
    change_of_row,
    creation,
    declared_arguments,
    make_step,
    reasons_of,
)
from fleetform.spec.canonical import digest
from fleetform.spec.desired import Declared


def propose_create(declared: Declared) -> Proposal:
    step = make_step(Verb.FLEET_MAKE, declared.key, _arguments(declared))
    return Proposal(creation(declared, step))


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    before = row.parsed
    changed = changed_fields("fleet", before, declared.document)
    if not changed and row.digest:
        return None
    step = make_step(Verb.FLEET_UPDATE, declared.key, _arguments(declared))
    ends = was_made(row) and recreates(before, declared.document)
    return Proposal(
        change_between(
            row,
            declared,
            Action.UPDATE,
            # Hosts may have come or gone on the way to a document that is no longer declared.
            reasons_of(changed) or (Reason.UNFINISHED,),
            changed,
            step,
            destructive=ends,
            at_stake=hosts_at_stake(Action.UPDATE, nodes_wanted(before)) if ends else "",
        )
    )


def was_made(row: LiveResource) -> bool:
    """
    Whether there are hosts by the document of a row, as far as it can tell.

    That it has no digest is no proof of the contrary: a later step has failed, or was broken off,
    and its hosts are there with whatever runs on them. Only what has never been made in whole has
    no document either; which hosts there are of that the ledger alone knows.
    """
    return row.document not in {"", "{}"}


def recreates(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether hosts are exchanged without waiting for what runs on them."""
    return waits_for_nobody(after) and template_of(before) != template_of(after)


def hastens(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether an exchange that is under way and waits for what runs would wait no longer."""
    return waits_for_nobody(after) and not waits_for_nobody(before)


def waits_for_nobody(document: Mapping[str, Any]) -> bool:
    """Whether hosts that are exchanged end what runs on them."""
    return bool((document.get("update") or {}).get("strategy") == "recreate")


def hosts_at_stake(action: Action, count: int) -> str:
    """Say what goes with so many hosts of a fleet, which are all that it has."""
    hosts = counted(count, "host")
    return _cut_short(hosts) if action is Action.UPDATE else f"{hosts} and all jobs on them"


def _cut_short(what: str) -> str:
    return f"{what} and all jobs there, because of `update: {{strategy: recreate}}`"


def propose_remove(row: LiveResource) -> Proposal:
    return Proposal(
        change_of_row(
            row,
            Action.DELETE,
            Reason.REMOVED,
            make_step(Verb.FLEET_REMOVE, row.key, {}),
            destructive=True,
            at_stake=hosts_at_stake(Action.DELETE, nodes_wanted(row.parsed)),
        )
    )


def propose_renew(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Let all hosts go and make them anew."""
    removal = propose_remove(row).change
    (remove,) = removal.steps
    make = make_step(Verb.FLEET_MAKE, declared.key, _arguments(declared), (remove.key,))
    return _as_asked(declared, row, Action.REPLACE, (remove, make), at_stake=removal.at_stake)


def propose_exchange(declared: Declared, row: LiveResource, hosts: Sequence[str]) -> Proposal:
    """Have these hosts, by name, give way to others, as `update` says; what else differs too."""
    before = row.parsed
    arguments = {**_arguments(declared), "exchange": sorted(hosts)}
    step = make_step(Verb.FLEET_UPDATE, declared.key, arguments)
    at_stake = ""
    if waits_for_nobody(declared.document):
        all_of_them = was_made(row) and recreates(before, declared.document)
        at_stake = (
            hosts_at_stake(Action.UPDATE, nodes_wanted(before))
            if all_of_them
            else _cut_short(f"host {', '.join(hosts)}")
        )
    return _as_asked(declared, row, Action.UPDATE, (step,), at_stake=at_stake)


def _as_asked(
    declared: Declared, row: LiveResource, action: Action, steps: tuple[Step, ...], *, at_stake: str
) -> Proposal:
    """What somebody asked to be made anew; nothing at stake is nothing destroyed."""
    changed = changed_fields("fleet", row.parsed, declared.document)
    return Proposal(
        change_between(
            row,
            declared,
            action,
            (Reason.REPLACE_ASKED, *reasons_of(changed)),
            changed,
            *steps,
            destructive=bool(at_stake),
            at_stake=at_stake,
        )
    )


def propose_forget(row: LiveResource) -> Proposal:
    """Hosts stay up, with their agents; nobody here knows them any more."""
    return Proposal(
        change_of_row(row, Action.FORGET, Reason.LET_GO, make_step(Verb.FLEET_FORGET, row.key, {}))
    )


def propose_adopt(declared: Declared) -> Proposal:
    """Hosts of this environment that no fleet has become this one's; the rest is made."""
    made = propose_create(declared).change
    step = make_step(Verb.FLEET_ADOPT, declared.key, _arguments(declared))
    return Proposal(replace(made, action=Action.ADOPT, reasons=(Reason.FOUND,), steps=(step,)))


def propose_taking_in(declared: Declared, row: LiveResource) -> Proposal:
    """As `propose_adopt`, for a fleet that is there: what it lacks may be hosts that were let go."""
    change = propose_adopt(declared).change
    fields = changed_fields("fleet", row.parsed, declared.document)
    return Proposal(replace(change, fields=fields, uid=row.uid, generation=row.generation))


def _arguments(declared: Declared) -> dict[str, Any]:
    name = declared.key.name
    return {
        **declared_arguments(declared),
        "template": template_of(declared.document),
        # Numbered from 0 and named by number, so that the instances of two plans are the same.
        "instances": [
            _place(f"{name}-{number}", number, declared.document)
            for number in range(nodes_wanted(declared.document))
        ],
    }


def template_of(document: Mapping[str, Any]) -> str:
    """
    What a host is made from, as a digest: how it is divided among jobs.

    Jobs hold parts of it, so that it cannot change under them; what a host has changes in place.
    """
    return digest(
        {"sharing": document.get("sharing", "exact"), "blocks": document.get("blocks", 1)}
    )


def _place(name: str, number: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """One host that is wanted; `drained` says why nothing more is to be placed on it."""
    place: dict[str, Any] = {"name": name, "number": number}
    for entry in document.get("drain", ()):
        if name in entry.get("hosts", (name,)):
            place["drained"] = entry["reason"]
    return place


def nodes_wanted(document: Mapping[str, Any]) -> int:
    """How many hosts the fleet shall have now; one when the document does not say."""
    nodes = document.get("nodes")
    if nodes is None:
        return 1
    wanted = nodes.get("target")
    return int(nodes.get("min") or 0 if wanted is None else wanted)

"""
A volume: moving it makes another one.

What becomes of the data is said by the policy last applied: a commit that brings
`deletion_policy: delete` along with the removal does not destroy what was to be kept until then.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, FieldChange, HeldBy, Permissions, Reason, Step
from fleetform.model.verbs import Verb
from fleetform.model.volume import (
    DISK,
    disk_of,
    disk_place,
    disk_request,
    is_disk,
    snapshot_place,
    volume_hosts,
)
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
from fleetform.spec.names import natural_order

_OWN_FOLDER = re.compile(r"/volumes/[0-9a-f]{32}\Z")


def propose_create(declared: Declared) -> Proposal:
    return propose_creation(
        declared, make_step(Verb.VOLUME_MAKE, declared.key, _arguments(declared))
    )


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Update in place, unless a changed field makes it another volume."""
    before = row.parsed
    changed = changed_fields("volume", before, declared.document)
    if not changed and row.digest:
        return None
    if is_disk(before) and is_disk(declared.document) and before:
        return _changed_disk(declared, row, before, changed)
    if any(one.forces for one in changed):
        replaced = _replaced(declared, row, before, changed, reasons_of(changed))
        return _held_in_place(replaced, before, declared.document)
    there = volume_hosts(row.outputs)
    is_partial = row.state != "failed" and there is not None and there.not_on
    why = Reason.HOSTS_LACK_IT if is_partial else Reason.UNFINISHED
    return _updated(declared, row, reasons_of(changed) or (why,), changed)


def _changed_disk(
    declared: Declared,
    row: LiveResource,
    before: Mapping[str, Any],
    changed: tuple[FieldChange, ...],
) -> Proposal:
    """Grow a disk in place; another place or another content is another disk."""
    after = declared.document
    if disk_place(before) != disk_place(after):
        return _replaced(declared, row, before, changed, reasons_of(changed))
    # A value that was a default and is written now changes nothing.
    in_place = tuple(replace(one, forces=False) for one in changed)
    update = _updated(declared, row, reasons_of(changed) or (Reason.UNFINISHED,), in_place)
    if before.get("size", 0) <= after.get("size", 0):
        return update
    return Proposal(
        update.change,
        HeldBy.PROTECTION,
        "the disk has its size already, and disks cannot shrink",
        f"write the size again, or replace the disk: `fleetform apply --allow-destroy --replace {row.key}`",
    )


def propose_growth(declared: Declared, row: LiveResource) -> Proposal:
    """Make the directory on hosts that its fleet gets."""
    return _updated(declared, row, (Reason.HOSTS_LACK_IT,), ())


def _updated(
    declared: Declared,
    row: LiveResource,
    reasons: tuple[Reason, ...],
    changed: tuple[FieldChange, ...],
) -> Proposal:
    before, after = row.parsed, declared.document
    arguments, there = _arguments(declared, row), volume_hosts(row.outputs)
    if there is not None:
        arguments["made_on"] = sorted(there.made_on, key=natural_order)
    if DISK not in arguments and not row.digest and (row.state == "failed" or there is None):
        # It was to go, and may have gone although nobody heard of it.
        arguments["take"] = "any"
    leaving = _leaving(row, after)
    if leaving is None:
        step = make_step(Verb.VOLUME_UPDATE, declared.key, arguments)
        return propose_change_of(row, declared, Action.UPDATE, reasons, changed, step)
    fate = _fate(before, after)
    withdraw = _withdrawal(row, leaving, after["hosts"], fate)
    return propose_change_of(
        row,
        declared,
        Action.UPDATE,
        reasons,
        changed,
        withdraw,
        make_step(Verb.VOLUME_UPDATE, declared.key, arguments, (withdraw.key,)),
        destructive=fate is _Fate.REMOVED,
        at_stake=_impact(row, before, fate, _hosts_text(leaving)),
    )


def _leaving(row: LiveResource, after: Mapping[str, Any]) -> list[str] | None:
    """Name the hosts that no longer have the volume; empty: all that are not listed; None: none."""
    if "hosts" not in after:
        return None
    there, before = volume_hosts(row.outputs), row.parsed
    if there is None and "hosts" not in before:
        # The ledger of an earlier release does not say which hosts have it.
        return []
    known = before.get("hosts", ()) if there is None else there.made_on
    leaving = sorted(set(known).difference(after["hosts"]), key=natural_order)
    return leaving or None


def _withdrawal(row: LiveResource, leaving: list[str], staying: Any, fate: _Fate) -> Step:
    arguments: dict[str, Any] = {
        "fleet": row.parsed.get("fleet", ""),
        "path": row.parsed.get("path", ""),
        "data": _DATA[fate],
        "stays_on": staying,
    }
    if leaving:
        arguments["hosts"] = leaving
    if fate is _Fate.PUT_ASIDE:
        arguments["into"] = _aside(row, row.parsed)
    return make_step(Verb.VOLUME_WITHDRAW, row.key, arguments)


def _hosts_text(names: list[str]) -> str:
    if not names:
        return "the other hosts"
    shown = ", ".join(names[:_HOSTS_SHOWN])
    more = f" and {len(names) - _HOSTS_SHOWN} more" if len(names) > _HOSTS_SHOWN else ""
    return f"{'host' if len(names) == 1 else 'hosts'} {shown}{more}"


def _replaced(
    declared: Declared,
    row: LiveResource,
    before: Mapping[str, Any],
    changed: tuple[FieldChange, ...],
    reasons: tuple[Reason, ...],
) -> Proposal:
    """Another volume in the place of this one."""
    fate = _fate(before, declared.document)
    old = _drop(row, before, fate)
    impact = _impact(row, before, fate)
    if is_disk(before) and is_disk(declared.document):
        impact = f"{_new_disk(declared.document)}; {impact.removeprefix(_NO_LOSS)}"
    return propose_change_of(
        row,
        declared,
        Action.REPLACE,
        reasons,
        changed,
        old,
        make_step(Verb.VOLUME_MAKE, declared.key, _arguments(declared), (old.key,)),
        destructive=True,
        at_stake=impact,
    )


def _held_in_place(
    proposal: Proposal, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Proposal:
    """A volume would be taken away for itself where its path is only written in another way."""
    paths = [str(one.get("path", "")) for one in (before, after)]
    relative = [path for path in paths if not path.startswith("/")]
    absolute = [path for path in paths if path.startswith("/")]
    if before.get("fleet") != after.get("fleet") or not (relative and absolute):
        return proposal
    folder = absolute[0].removesuffix(f"/{relative[0]}")
    # Where hosts put what has no absolute path: by the environment's uid, which no other has.
    if folder == absolute[0] or not _OWN_FOLDER.search(folder):
        return proposal
    return Proposal(
        proposal.change,
        HeldBy.PROTECTION,
        f"{absolute[0]} is the same directory as {paths[0]}, so its data would be deleted without need",
        f"write `path: {paths[0]}` again, or name another directory",
    )


def propose_remove(row: LiveResource) -> Proposal:
    """Forget the volume and leave its data, put it aside, or remove both: as its policy says."""
    document = row.parsed
    fate = _fate(document)
    return propose_change_of_row(
        row,
        Action.DELETE if fate is _Fate.REMOVED else Action.FORGET,
        Reason.REMOVED,
        _drop(row, document, fate),
        destructive=fate is _Fate.REMOVED,
        at_stake=_impact(row, document, fate),
    )


def propose_renew(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Another volume in its place, which is empty: only where the policy lets the data go."""
    before = row.parsed
    changed = changed_fields("volume", before, declared.document)
    proposal = _replaced(
        declared, row, before, changed, (Reason.REPLACE_ASKED, *reasons_of(changed))
    )
    is_kept_there = _fate(before, declared.document) is _Fate.FORGOTTEN and not is_disk(before)
    if not is_kept_there or _place(before) != _place(declared.document):
        return proposal
    return Proposal(
        proposal.change,
        HeldBy.PROTECTION,
        f"its data is kept, so a new volume in {before.get('path', '')} would not be empty",
        "apply `deletion_policy: delete` or `snapshot` first, or give it another path",
    )


def propose_forget(row: LiveResource) -> Proposal:
    """Whatever its policy says: the data stays."""
    document = row.parsed
    return propose_change_of_row(
        row,
        Action.FORGET,
        Reason.RELEASED,
        _drop(row, document, _Fate.FORGOTTEN),
        at_stake=_impact(row, document, _Fate.FORGOTTEN),
    )


def propose_adopt(declared: Declared) -> Proposal:
    """The directory is there, with whatever is in it, and becomes this volume."""
    made = propose_create(declared).change
    if is_disk(declared.document):
        return Proposal(
            made,
            HeldBy.NOT_SUPPORTED,
            "`import:` is for directories, and the volume is a disk",
            "remove it from `import:`, and name the disk with `volume_id`",
        )
    step = make_step(Verb.VOLUME_ADOPT, declared.key, _arguments(declared))
    return Proposal(replace(made, action=Action.ADOPT, reasons=(Reason.FOUND,), steps=(step,)))


class _Fate(enum.Enum):
    """What becomes of a volume that goes, by the verb that brings it about."""

    FORGOTTEN = Verb.VOLUME_FORGET
    PUT_ASIDE = Verb.VOLUME_SNAPSHOT
    REMOVED = Verb.VOLUME_REMOVE


def _fate(before: Mapping[str, Any], after: Mapping[str, Any] | None = None) -> _Fate:
    """By the policy last applied; with another volume in its place, data goes only if both say so."""
    policy = before.get("deletion_policy", "retain")
    if "volume_id" in before:
        return _Fate.FORGOTTEN
    if policy == "snapshot":
        return _Fate.PUT_ASIDE
    wanted = policy if after is None else after.get("deletion_policy", "retain")
    return _Fate.REMOVED if policy == wanted == "delete" else _Fate.FORGOTTEN


_DATA = {_Fate.FORGOTTEN: "retain", _Fate.PUT_ASIDE: "snapshot", _Fate.REMOVED: "delete"}
"""What a withdrawal does with the data on the hosts that it leaves, as policies call it."""

_NO_LOSS = "no data is lost; "
"""At the beginning of what a removal does that keeps the data."""

_HOSTS_SHOWN = 5
"""Hosts that a sentence names; the change of `hosts` lists all."""


def _drop(row: LiveResource, document: Mapping[str, Any], fate: _Fate) -> Step:
    arguments = _where(document, row)
    if (there := volume_hosts(row.outputs)) is not None:
        # Of a host on which it was never made, nothing is asked.
        arguments["hosts"] = sorted(there.made_on, key=natural_order)
    if fate is _Fate.PUT_ASIDE and not is_disk(document):
        arguments["into"] = _aside(row, document)
    return make_step(fate.value, row.key, arguments)


def _aside(row: LiveResource, document: Mapping[str, Any]) -> str:
    return snapshot_place(document.get("path", ""), row.key.name, row.uid)


def _arguments(declared: Declared, row: LiveResource | None = None) -> dict[str, Any]:
    return {**declared_arguments(declared), **_where(declared.document, row)}


def _place(document: Mapping[str, Any]) -> tuple[Any, Any]:
    return document.get("fleet"), document.get("path")


def _where(document: Mapping[str, Any], row: LiveResource | None = None) -> dict[str, Any]:
    if is_disk(document):
        disk = None if row is None else disk_of(row.outputs)
        return {"fleet": "", "path": "", DISK: disk_request(document, disk)}
    where = {"fleet": document.get("fleet", ""), "path": document.get("path", "")}
    return {**where, "hosts": document["hosts"]} if "hosts" in document else where


def _impact(row: LiveResource, document: Mapping[str, Any], fate: _Fate, hosts: str = "") -> str:
    if is_disk(document):
        return _disk_impact(row, document, fate)
    fleet = (
        f"{hosts} of fleet {document.get('fleet', '')}"
        if hosts
        else f"fleet {document.get('fleet', '')}"
    )
    where = f"{document.get('path', '')} on {fleet}"
    match fate:
        case _Fate.FORGOTTEN:
            return f"{_NO_LOSS}its data stays in {where}"
        case _Fate.PUT_ASIDE:
            return f"{_NO_LOSS}its data is moved to {_aside(row, document)} on {fleet}"
        case _Fate.REMOVED:
            return f"all data in {where}"


def _disk_impact(row: LiveResource, document: Mapping[str, Any], fate: _Fate) -> str:
    disk = disk_of(row.outputs)
    where = f"{'its disk' if disk is None else disk.id} in {document.get('availability_zone') or document.get('region', '')}"
    if "volume_id" in document:
        return f"{_NO_LOSS}{where} stays, with its data, as every disk that `volume_id` names"
    why = f"`deletion_policy: {_DATA[fate]}`"
    match fate:
        case _Fate.FORGOTTEN:
            return f"{_NO_LOSS}{where} stays, with its data, and AWS bills it until you delete it ({why})"
        case _Fate.PUT_ASIDE:
            return (
                f"{_NO_LOSS}{where} is deleted once a snapshot of it is complete, and AWS bills the snapshot until you"
                f" delete it ({why})"
            )
        case _Fate.REMOVED:
            return f"all data on {where}, which is deleted without a snapshot ({why})"


def _new_disk(document: Mapping[str, Any]) -> str:
    """Say with what data the disk begins that takes the place of another one."""
    if "volume_id" in document:
        return (
            f"the volume has the data of {document['volume_id']} then, and not that of the old disk"
        )
    snapshot = document.get("aws", {}).get("snapshot_id")
    return f"the new disk begins with {snapshot}" if snapshot else "the new disk is empty"

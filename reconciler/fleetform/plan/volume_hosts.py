"""
Volumes on hosts that documents list: which hosts still need the directory, and which runs fit none.

A fleet that gets hosts gives them its volumes in the same plan, or jobs would be placed where their
data is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fleetform.model.figures import counted
from fleetform.model.instance import InstanceState
from fleetform.model.plan import Action, HeldBy, Reason
from fleetform.model.verbs import Verb
from fleetform.model.volume import is_disk, mounts, volume_hosts
from fleetform.plan.draft import PlanDraft
from fleetform.plan.kinds.volume import propose_growth
from fleetform.spec.checks.hosts import hosts_of
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import host_name

__all__ = [
    "grow_volumes",
    "hold_on_disks",
    "hold_on_silent_hosts",
    "hold_without_volume_host",
]


def grow_volumes(draft: PlanDraft) -> None:
    """Make volumes that all hosts of a fleet have on the hosts that the fleet gets."""
    growing = {key.name for key in draft.changes if key.kind == "fleet" and _grows(draft, key)}
    if not growing:
        return
    for key in sorted(draft.present):
        declared = draft.wanted.get(key)
        if key.kind != "volume" or declared is None or key in draft.changes or key in draft.held:
            continue
        if declared.document.get("fleet") in growing and "hosts" not in declared.document:
            row = draft.present[key]
            if row.state == "present" and not row.operation:
                draft.add(propose_growth(declared, row))


def _grows(draft: PlanDraft, key: ResourceKey) -> bool:
    declared = draft.wanted.get(key)
    if declared is None or draft.changes[key].action is not Action.UPDATE:
        return False
    there = {one.name for one in draft.live.instances if one.fleet == key.name}
    return not _host_names(declared.document) <= there


def _host_names(fleet: Mapping[str, Any]) -> set[str]:
    return {host_name(one["hostname"], one.get("port")) for one in hosts_of(fleet)}


def hold_on_silent_hosts(draft: PlanDraft) -> None:
    """
    Hold what only makes directories on hosts that do not answer.

    Without this, each round of `serve` would try the same hosts again.
    """
    for key in sorted(draft.changes):
        change = draft.changes[key]
        if key.kind != "volume" or change.reasons != (Reason.HOSTS_LACK_IT,):
            continue
        row = draft.present[key]
        there = volume_hosts(row.outputs)
        lacking = set() if there is None else set(there.not_on)
        fleet = row.parsed.get("fleet")
        here = [one for one in draft.live.instances if one.fleet == fleet]
        wanted = set(row.parsed.get("hosts", [one.name for one in here]))
        silent = {one.name for one in here if one.state is not InstanceState.READY}
        made_on = frozenset() if there is None else there.made_on
        if lacking and wanted - made_on <= silent and not _has_change(draft, fleet):
            names = ", ".join(sorted(lacking))
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"host {names} {'does' if len(lacking) == 1 else 'do'} not answer and"
                f" {'has' if len(lacking) == 1 else 'have'} no directory of it yet",
                "the next apply creates it once the host answers, or remove the host from its fleet",
            )


def _has_change(draft: PlanDraft, fleet: Any) -> bool:
    return ResourceKey("fleet", str(fleet)) in draft.changes


def hold_without_volume_host(draft: PlanDraft) -> None:
    """Block runs whose volumes are together on fewer hosts than they need."""
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        submits = any(step.verb == Verb.RUN_SUBMIT for step in draft.changes[key].steps)
        if declared is None or not submits:
            continue
        listed = _listed(draft, [one[0] for one in mounts(declared.document) if len(one) == 1])
        if not listed:
            continue
        names = list(listed)
        hosts = frozenset.intersection(*listed.values())
        nodes = declared.document.get("nodes", 1)
        if len(hosts) < nodes:
            which = f"volume {names[0]}" if len(names) == 1 else f"volumes {', '.join(names)}"
            have = ", ".join(sorted(hosts)) or "no host"
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"it needs {counted(nodes, 'host')} with {which}, and {have}"
                f" {'has' if len(hosts) < 2 else 'have'} {'it' if len(names) == 1 else 'all of them'}",
                "list more hosts in `hosts` of the volume, or choose fewer `nodes`",
            )


def hold_on_disks(draft: PlanDraft) -> None:
    """Block runs whose disks cannot be attached to their hosts: a disk is in one zone, and on one host."""
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        submits = any(step.verb == Verb.RUN_SUBMIT for step in draft.changes[key].steps)
        if declared is None or not submits:
            continue
        disks = {
            name: found.document
            for names in mounts(declared.document)
            for name in names
            if (found := draft.wanted.get(ResourceKey("volume", name))) is not None
            and is_disk(found.document)
        }
        for name, disk in disks.items():
            if problem := _disk_problem(draft, declared.document, name, disk):
                draft.hold(key, HeldBy.DEPENDENCY, *problem)
                break


def _disk_problem(
    draft: PlanDraft, run: Mapping[str, Any], name: str, disk: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Say why no host can have a disk, and what to do; None: some can."""
    is_shared = "file_system" in disk.get("aws", {})
    if run.get("nodes", 1) > 1 and not is_shared:
        return (
            f"volume {name} is a disk, attached to one host at a time, and the run has {run['nodes']} nodes",
            "mount a disk for each node, such as `name: data-${{ dstack.node_rank }}`, or choose one node",
        )
    fleets = run.get("fleets") or sorted(key.name for key in draft.wanted if key.kind == "fleet")
    found = {fleet: draft.wanted.get(ResourceKey("fleet", fleet)) for fleet in fleets}
    if any(one is not None and _has_zone(one.document, disk) for one in found.values()):
        return None
    zone, account = disk.get("availability_zone", ""), disk.get("aws", {}).get("account", "")
    if is_shared:
        region = disk.get("region", "")
        where = f"region {region} of account {account}"
        return (
            f"volume {name} is in {where}, and no fleet that the run may use has its hosts there",
            f"declare `regions: [{region}]` and this account in its fleet",
        )
    where = f"zone {zone} of account {account}"
    return (
        f"volume {name} is in {where}, and no fleet that the run may use has its hosts there",
        f"declare `availability_zones: [{zone}]` and this account in its fleet",
    )


def _has_zone(fleet: Mapping[str, Any], disk: Mapping[str, Any]) -> bool:
    return (
        fleet.get("aws", {}).get("account") == disk.get("aws", {}).get("account", "")
        and disk.get("region") in fleet.get("regions", ())
        and (
            "file_system" in disk.get("aws", {})
            or disk.get("availability_zone") in fleet.get("availability_zones", ())
        )
    )


def _listed(draft: PlanDraft, volumes: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the hosts of these volumes; those that all hosts of their fleet have are left out."""
    # Found by name: a search among all volumes would read every document of the tree.
    found = {name: draft.wanted.get(ResourceKey("volume", name)) for name in volumes}
    return {
        name: frozenset(one.document["hosts"])
        for name, one in found.items()
        if one is not None and "hosts" in one.document
    }

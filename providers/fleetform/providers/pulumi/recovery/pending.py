"""
Decide what became of the operations of a change that was cut off.

The state lists an operation before the cloud is called, and removes it with the result. An
operation that is still listed may have happened or not. The engine only warns of it and creates
again, so each is compared with the inventory here, and settled before the next `up`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetform.providers.pulumi.engine.deployment import Deployment, is_of_engine
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG, Existing, matches

__all__ = ["Settlement", "settle", "waits_for"]


@dataclass(frozen=True, slots=True)
class Settlement:
    """
    A deployment without pending operations, and how each was settled; resources by name.

    `adopted`: created, now in the state. `dropped`: not created, or nothing is known to look for.
    `removed`: deleted, no longer in the state. `kept`: not deleted, or updated to an extent that a
    refresh finds out. `orphans` exist although another thing with the same uid was adopted.
    """

    deployment: Deployment
    adopted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    orphans: tuple[Existing, ...] = ()


def waits_for(deployment: Deployment, shown: Sequence[Existing]) -> tuple[str, ...]:
    """
    Name the pending creates of which the inventory shows nothing, neither existing nor ended.

    A cloud lists new things late, so their absence counts only after a wait.
    """
    known = _known_ids(deployment)
    return tuple(
        _name(entry)
        for kind, entry in _pending(deployment)
        if kind == "creating" and _uid(entry) and not _created(entry, shown, known)
    )


def settle(deployment: Deployment, existing: Sequence[Existing]) -> Settlement:
    """
    Settle every pending operation of a deployment.

    Args:
        deployment: As exported, while no process of the engine lives.
        existing: The inventory, read after that.
    """
    resources: list[dict[str, Any]] = [dict(one) for one in deployment.get("resources") or ()]
    known = _known_ids(deployment)
    done: dict[str, list[str]] = {"adopted": [], "dropped": [], "removed": [], "kept": []}
    orphans: list[Existing] = []
    for kind, entry in _pending(deployment):
        if kind == "creating":
            created = _created(entry, existing, known)
            if created:
                _adopt(resources, entry, created[0].id)
                orphans += created[1:]
                known |= {one.id for one in created}
            done["adopted" if created else "dropped"].append(_name(entry))
        elif kind == "deleting" and not _exists(entry, existing):
            resources = [one for one in resources if not _is_same(one, entry)]
            done["removed"].append(_name(entry))
        else:
            done["kept"].append(_name(entry))
    settled = {**deployment, "resources": resources, "pending_operations": []}
    return Settlement(
        deployment=settled,
        adopted=tuple(done["adopted"]),
        dropped=tuple(done["dropped"]),
        removed=tuple(done["removed"]),
        kept=tuple(done["kept"]),
        orphans=tuple(orphans),
    )


def _pending(deployment: Deployment) -> list[tuple[str, Mapping[str, Any]]]:
    operations = deployment.get("pending_operations") or ()
    return [(one["type"], one["resource"]) for one in operations]


def _known_ids(deployment: Deployment) -> set[str]:
    return {one["id"] for one in deployment.get("resources") or () if one.get("id")}


def _created(
    entry: Mapping[str, Any], existing: Sequence[Existing], known: set[str]
) -> list[Existing]:
    # What the state knows already was not created by this operation: a replacement has the uid of
    # the thing that it replaces.
    inputs = entry.get("inputs") or {}
    return [one for one in existing if one.id not in known and matches(one, entry["type"], inputs)]


def _exists(entry: Mapping[str, Any], existing: Sequence[Existing]) -> bool:
    # Without a uid the inventory would not list it either way; a refresh asks the cloud for it.
    return not _uid(entry) or any(one.id == entry.get("id") for one in existing)


def _adopt(resources: list[dict[str, Any]], entry: Mapping[str, Any], new_id: str) -> None:
    new = {**entry, "id": new_id, "outputs": entry.get("outputs") or {}}
    for place, old in enumerate(resources):
        if old["urn"] == entry["urn"] and not old.get("delete"):
            # Before the one that it replaces: what depends on their name comes after both.
            old["delete"] = True
            resources.insert(place, new)
            return
    resources.append(new)


def _is_same(one: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return bool(one["urn"] == entry["urn"] and one.get("id") == entry.get("id"))


def _uid(entry: Mapping[str, Any]) -> str:
    if is_of_engine(entry):
        return ""
    tags = (entry.get("inputs") or {}).get("tags") or {}
    return str(tags.get(IDENTITY_TAG, ""))


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["urn"]).rpartition("::")[2]

"""
Looks at what new volumes would take of this machine, so that a plan can name its owner, or that it
is a file, or is not there to be taken in.

Only where a path leads out of the environment's own folder, is to be taken in as it is found, or
meets one where data was left, and only for what is about to be made: whether a volume that is
there is still ours is drift's to say. What was left and is gone by now does not come back, and is
in nobody's way. On other machines the agent finds out, and refuses with the same sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fleetform.model.claim import Claim
from fleetform.model.rows import quiet_digests
from fleetform.spec.desired import ResourceKey
from fleetform.spec.folders import Places
from fleetform.spec.table import digests_of

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.live import Live
    from fleetform.model.volume import LeftData
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import PlaceSeen
    from fleetform.spec.desired import Desired

__all__ = ["claimed", "with_claims"]


def with_claims(workspace: Workspace, desired: Desired, live: Live) -> Live:
    """Return what is live, with who owns what new volumes would take, and what is really left."""
    if not _new_places(desired, live) and not _left_met(desired, live):
        return live
    # Most plans make no volume of such a path, and need neither a loop nor what drives hosts.
    import asyncio

    from fleetform.app.opening import host_provider

    return asyncio.run(claimed(host_provider(workspace), desired, live))


async def claimed(hosts: HostProvider, desired: Desired, live: Live) -> Live:
    """As `with_claims`, for whoever runs a loop already."""
    claims: dict[ResourceKey, Claim] = {}
    uid = desired.environment.uid
    for key, path in _new_places(desired, live).items():
        seen = await hosts.place_at(uid, path)
        if seen.is_file:
            claims[key] = Claim(what=path, owner_uid="", is_file=True)
            continue
        if seen.environment_uid not in {"", uid}:
            claims[key] = _claim(path, seen)
            continue
        around = await hosts.volume_around(uid, path)
        if around is not None and not _goes(around.mark, uid, key, desired, live):
            claims[key] = dataclasses.replace(
                _claim(path, around.mark), near=around.mark.path, is_inside=around.is_inside
            )
        elif not seen.exists and key in desired.imports:
            # Last: where somebody else's lies around it, it may not be made either.
            claims[key] = Claim(what=seen.path, owner_uid="", missing=str(key))
    gone = {one for one in _left_met(desired, live) if not await _is_there(hosts, uid, one)}
    if gone:
        left = tuple(one for one in live.left if one not in gone)
        live = dataclasses.replace(live, left=left)
    return dataclasses.replace(live, claims=claims) if claims else live


async def _is_there(hosts: HostProvider, uid: str, left: LeftData) -> bool:
    seen = await hosts.place_at(uid, left.path)
    return (seen.environment_uid, seen.volume_uid) == (uid, left.uid)


def _claim(path: str, mark: PlaceSeen) -> Claim:
    return Claim(
        what=path,
        owner_uid=mark.environment_uid,
        owner_name=mark.environment_name,
        holds=f"volume {mark.volume_name}" if mark.volume_name else "",
        since_ms=mark.marked_at_ms,
    )


def _goes(mark: PlaceSeen, uid: str, key: ResourceKey, desired: Desired, live: Live) -> bool:
    """
    Tell whether a volume of ours is this one where it was, or is declared no more.

    It lets its place go first then, which is for the planner to see to, and for the agent.
    """
    owner = ResourceKey("volume", mark.volume_name)
    is_known = mark.environment_uid == uid and owner in live.resources
    return is_known and (owner == key or owner not in desired.resources)


def _new_places(desired: Desired, live: Live) -> Mapping[ResourceKey, str]:
    """Paths of volumes that are not there as they are declared, by key, where they are looked at."""
    found = frozenset(desired.imports)
    return {
        key: path
        for key, path in _new_paths(desired, live)
        if path.startswith("/") or (path and key in found)
    }


def _left_met(desired: Desired, live: Live) -> tuple[LeftData, ...]:
    """What was left where volumes are to be that are not there yet, or around it or within."""
    if not live.left:
        return ()
    coming = Places((path, key) for key, path in _new_paths(desired, live))
    return tuple(one for one in live.left if coming.meets(one.path))


def _new_paths(desired: Desired, live: Live) -> Iterator[tuple[ResourceKey, str]]:
    quiet = quiet_digests(live.resources)
    for key, digest in digests_of(desired.resources).items():
        if key.kind != "volume" or quiet.get(key) == digest:
            continue
        declared = desired.resources[key]
        row = live.resources.get(key)
        if row is None or row.archived or row.digest != declared.digest:
            yield key, declared.document.get("path", "")

"""
Looks at what new volumes would take of this machine, so that a plan can name its owner.

Only where a path leads out of the environment's own folder, and only for what is about to be made:
whether a volume that is there is still ours is drift's to say. On other machines the agent finds
out, and refuses with the same sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fleetform.model.claim import Claim
from fleetform.model.rows import quiet_digests
from fleetform.spec.table import digests_of

if TYPE_CHECKING:
    from fleetform.model.live import Live
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.spec.desired import Desired, ResourceKey
    from fleetform.wiring.workspace import Workspace

__all__ = ["claimed", "with_claims"]


def with_claims(workspace: Workspace, desired: Desired, live: Live) -> Live:
    """Return what is live, with who owns what new volumes would take."""
    if not _new_places(desired, live):
        return live
    # Most plans make no volume of such a path, and need neither a loop nor what drives hosts.
    import asyncio

    from fleetform.wiring.opening import host_provider

    return asyncio.run(claimed(host_provider(workspace), desired, live))


async def claimed(hosts: HostProvider, desired: Desired, live: Live) -> Live:
    """As `with_claims`, for whoever runs a loop already."""
    claims: dict[ResourceKey, Claim] = {}
    uid = desired.environment.uid
    for key, path in _new_places(desired, live).items():
        seen = await hosts.place_at(uid, path)
        if seen.environment_uid not in {"", uid}:
            claims[key] = Claim(
                what=path,
                owner_uid=seen.environment_uid,
                owner_name=seen.environment_name,
                holds=f"volume {seen.volume_name}" if seen.volume_name else "",
                since_ms=seen.marked_at_ms,
            )
    return dataclasses.replace(live, claims=claims) if claims else live


def _new_places(desired: Desired, live: Live) -> Mapping[ResourceKey, str]:
    """Absolute paths of volumes that are not there as they are declared, by key."""
    places: dict[ResourceKey, str] = {}
    quiet = quiet_digests(live.resources)
    for key, digest in digests_of(desired.resources).items():
        if key.kind != "volume" or quiet.get(key) == digest:
            continue
        declared = desired.resources[key]
        path = declared.document.get("path", "")
        if not path.startswith("/"):
            continue
        row = live.resources.get(key)
        if row is None or row.archived or row.digest != declared.digest:
            places[key] = path
    return places

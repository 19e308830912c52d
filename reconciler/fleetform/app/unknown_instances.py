"""
Instances of a fleet that a cloud lists and the ledger does not know: a preview refuses them, and a command ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.ledger import open_for_writing
from fleetform.app.problems import LedgerProblem
from fleetform.model.existence import (
    UNKNOWN_CURE,
    CloudPlace,
    instances_of,
    place_of,
    unknown_instances_text,
)
from fleetform.model.refusals import LedgerUnavailable
from fleetform.providers.contract.errors import PermanentError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.providers.contract.hosts import HostCreator, InstanceRequest
    from fleetform.providers.contract.observed import InstanceSeen

__all__ = ["UnknownInstances", "forget_unknown"]


class UnknownInstances:
    """Compares with the ledger what clouds list of the environment; each account and region is listed once."""

    def __init__(self, workspace: Workspace, hosts: HostCreator) -> None:
        self._workspace = workspace
        self._hosts = hosts
        self._lists: dict[CloudPlace, asyncio.Future[Sequence[InstanceSeen]]] = {}

    async def refuse(self, request: InstanceRequest, regions: Iterable[str]) -> None:
        """
        Make sure that the ledger knows, or has known, each instance that the fleet of a new host has in these regions.

        Raises:
            PermanentError: It names them.
            ProviderError: The cloud does not list them.
        """
        places = [
            replace(request, endpoint={**request.endpoint, "region": one})
            for one in dict.fromkeys(regions)
        ]
        listed = await asyncio.gather(*map(self._listed, places))
        there = instances_of(request.fleet, chain.from_iterable(listed))
        known = self._workspace.read(
            lambda reader: reader.read_known_instances(there), frozenset[str]()
        )
        if unknown := [there[uid] for uid in there if uid not in known]:
            raise PermanentError(
                unknown_instances_text(request.fleet, unknown), advice=UNKNOWN_CURE
            )

    async def _listed(self, request: InstanceRequest) -> Sequence[InstanceSeen]:
        place = place_of(request.provider, request.endpoint)
        if place not in self._lists:
            asked = self._hosts.listed(self._workspace.environment.uid, request)
            self._lists[place] = asyncio.ensure_future(asked)
        return await self._lists[place]


def forget_unknown(workspace: Workspace, ids: Collection[str]) -> str:
    """Take instances that were ended out of the recorded drift; say why that fails, empty: it does not."""
    try:
        with contextlib.closing(open_for_writing(workspace)) as ledger:
            left = [
                one
                for one in ledger.read_live().recorded_drift
                if one.drift.field != "unknown" or one.drift.part not in ids
            ]
            ledger.note_observations({}, left, at_ms=SystemClock().now_ms())
    except (LedgerProblem, LedgerUnavailable) as problem:
        return str(problem)
    return ""

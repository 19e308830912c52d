"""
Adds to a plan what clouds say of it: the resources that the engine would create, before anything is created.

A preview is for people, and no part of what was decided: apply is bound to the steps, and the provider compares the engine's
preview with them again before it changes anything.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from fleetform.app.ledger import routed_hosts
from fleetform.app.problems import PlanProblem
from fleetform.model.instance import CLOUDS, request_of
from fleetform.model.offers import terms_of, with_offer
from fleetform.model.verbs import Verb
from fleetform.model.volume import DISK
from fleetform.providers.contract.errors import (
    OfferRefused,
    PermanentError,
    ProviderError,
    TemporaryError,
)
from fleetform.providers.contract.hosts import InstanceRequest, PreviewedChange
from fleetform.providers.contract.volumes import VolumeRequest
from fleetform.views.plan.offers import asked_offers, hosts_created

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Change, Plan
    from fleetform.providers.routing import RoutedHosts


def previewed(workspace: Workspace, plan: Plan, *, notice: Callable[[str], None]) -> Plan:
    """
    Return the plan that apply shows: with a preview where it creates instances or disks of clouds.

    A cloud that does not answer now, or that refuses the first offer, is said and is no reason to apply nothing: apply tries
    again, or the next offer.

    Raises:
        PlanProblem: The engine or a cloud refuses, so that apply would fail.
    """
    if not any(
        _new_hosts(plan, change) or _new_disks(change) or _shared(change) for change in plan.changes
    ):
        return plan
    try:
        return with_preview(workspace, plan)
    except PlanProblem as problem:
        if not isinstance(problem.__cause__, TemporaryError | OfferRefused):
            raise
        notice(problem.message)
        return plan


def with_preview(workspace: Workspace, plan: Plan) -> Plan:
    """
    Return the plan with `preview` in its annex: by fleet, or by `volume/NAME`, the resources that its change creates or updates.

    Raises:
        PlanProblem: A cloud or the engine does not say; the message says why.
    """
    hosts = routed_hosts(workspace)
    wanted = {
        change.key.name: requests
        for change in plan.changes
        if (requests := _new_hosts(plan, change))
    }
    disks = {str(change.key): request for change in plan.changes for request in _new_disks(change)}
    # By the name that the ledger has: a plan may rename the fleet.
    shared = {
        change.moved_from or change.key.name: said
        for change in plan.changes
        if (said := _shared(change))
    }
    there = _hosts_by_fleet(workspace) if shared else {}
    try:
        found = asyncio.run(_preview(hosts, wanted, disks, shared, there))
    except ProviderError as problem:
        advice = problem.advice if isinstance(problem, PermanentError) else ""
        raise PlanProblem(f"the preview failed: {problem}", advice) from problem
    preview = {name: [_row(one) for one in changes] for name, changes in found.items() if changes}
    # The preview of a change in place asks no cloud.
    is_asked = wanted or disks or not shared
    depth = {"depth": "preview"} if is_asked and plan.annex["depth"] == "ledger" else {}
    return dataclasses.replace(plan, annex={**plan.annex, **depth, "preview": preview})


async def _preview(
    hosts: RoutedHosts,
    wanted: Mapping[str, Sequence[InstanceRequest]],
    disks: Mapping[str, VolumeRequest],
    shared: Mapping[str, Mapping[str, Any]],
    there: Mapping[str, Sequence[InstanceRequest]],
) -> dict[str, Sequence[PreviewedChange]]:
    changes = await asyncio.gather(
        *(hosts.preview(requests) for requests in wanted.values()),
        *(hosts.volume_provider(one.provider).preview(one) for one in disks.values()),
    )
    found = dict(zip((*wanted, *disks), changes, strict=True))
    for name, said in shared.items():
        updates = await hosts.preview_shared(name, there.get(name, ()), said)
        found[name] = [*found.get(name, ()), *updates]
    return found


def _hosts_by_fleet(workspace: Workspace) -> dict[str, list[InstanceRequest]]:
    book = workspace.read(lambda reader: reader.read_book([]), None)
    found: dict[str, list[InstanceRequest]] = {}
    for one in book.instances if book else ():
        found.setdefault(one.fleet, []).append(request_of(one))
    return found


def _row(change: PreviewedChange) -> dict[str, Any]:
    """Return a previewed change as the annex has it: `properties` only where some differ."""
    return {name: value for name, value in dataclasses.asdict(change).items() if value}


def _shared(change: Change) -> Mapping[str, Any]:
    """Return what the hosts of a fleet share after its change; empty: nothing that exists by now."""
    updates = (step for step in change.steps if step.verb == Verb.FLEET_UPDATE)
    return next((step.arguments.get("shared", {}) for step in updates), {})


def _new_disks(change: Change) -> list[VolumeRequest]:
    name = change.key.name
    return [
        VolumeRequest(uid=name, name=name, **step.arguments[DISK])
        for step in change.steps
        if step.verb == Verb.VOLUME_MAKE
        and DISK in step.arguments
        and not step.arguments[DISK]["registered"]
    ]


def _new_hosts(plan: Plan, change: Change) -> list[InstanceRequest]:
    new = hosts_created(plan, change)
    first = next(iter(asked_offers(plan, change)), None)
    return [
        InstanceRequest(
            "", place["name"], change.key.name, {},
            provider=place["provider"],
            endpoint=with_offer(place["endpoint"], terms_of(first or place["endpoint"])),
        )
        for step in change.steps
        for place in step.arguments.get("instances", ())
        if place.get("provider") in CLOUDS and place["name"] in new
    ]  # fmt: skip

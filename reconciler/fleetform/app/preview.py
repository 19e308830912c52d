"""
Adds to a plan what clouds say of it: the resources that the engine would create, before anything is created.

A preview is for people, and no part of what was decided: apply is bound to the steps, and the provider compares the engine's
preview with them again before it changes anything.
"""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
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
from fleetform.views.plan.preview import preview_failure, preview_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Change, Plan
    from fleetform.providers.routing import RoutedHosts

    _Question = Callable[[], Awaitable[Sequence[PreviewedChange]]]


def previewed(workspace: Workspace, plan: Plan) -> Plan:
    """Return the plan that apply shows: with a preview where it creates instances or disks of clouds."""
    if not any(
        _new_hosts(plan, change) or _new_disks(change) or _shared(change) for change in plan.changes
    ):
        return plan
    return with_preview(workspace, plan)


def with_preview(workspace: Workspace, plan: Plan) -> Plan:
    """
    Return the plan with `preview` in its annex: by fleet, or by `volume/NAME`, the resources that its change creates or updates.

    `preview_failed` has, by the same names, why a cloud or the engine does not say. A preview that fails leaves those of the
    others as they are.
    """
    hosts = routed_hosts(workspace)
    has_shared = any(map(_shared, plan.changes))
    there = _hosts_by_fleet(workspace) if has_shared else {}
    asked = {
        preview_name(change.key): questions
        for change in plan.changes
        if (questions := _questions(hosts, plan, change, there))
    }
    found = asyncio.run(_answers(asked))
    failed = {name: _failure(one) for name, one in found.items() if isinstance(one, ProviderError)}
    preview = {
        name: [_row(change) for change in one]
        for name, one in found.items()
        if one and not isinstance(one, ProviderError)
    }
    # The preview of a change in place asks no cloud.
    creates = any(_new_hosts(plan, change) or _new_disks(change) for change in plan.changes)
    is_asked = creates or not has_shared
    depth = {"depth": "preview"} if is_asked and plan.annex["depth"] == "ledger" else {}
    failures = {"preview_failed": failed} if failed else {}
    return dataclasses.replace(plan, annex={**plan.annex, **depth, "preview": preview, **failures})


def require_previewed(plan: Plan, undone: str = "", *, or_passes: bool = False) -> None:
    """
    Make sure that no preview failed.

    Args:
        plan: With its previews.
        undone: What is not done for it, such as `nothing was applied`; empty: nothing else was asked for.
        or_passes: A failure that may pass is allowed: a cloud that does not answer now, or that refuses the first offer,
            is no reason to apply nothing, because apply tries again, or the next offer.

    Raises:
        PlanProblem: It names the fleets and volumes.
    """
    failed = {
        str(change.key): one
        for change in plan.changes
        if (one := preview_failure(plan, change)) and not (or_passes and one["passes"])
    }
    if not failed:
        return
    end = f"; {undone}" if undone else ""
    if len(failed) > 1:
        raise PlanProblem(
            f"the previews of {', '.join(failed)} failed{end}", "the plan says why, at each of them"
        )
    ((name, one),) = failed.items()
    raise PlanProblem(f"the preview of {name} failed: {one['message']}{end}", one["advice"])


def _failure(problem: ProviderError) -> dict[str, Any]:
    return {
        "message": str(problem),
        "advice": problem.advice if isinstance(problem, PermanentError) else "",
        "passes": isinstance(problem, TemporaryError | OfferRefused),
    }


def _questions(
    hosts: RoutedHosts,
    plan: Plan,
    change: Change,
    there: Mapping[str, Sequence[InstanceRequest]],
) -> list[_Question]:
    """Return what providers are asked of one change, in the order of its rows."""
    questions: list[_Question] = [
        partial(_preview_disk, hosts, disk) for disk in _new_disks(change)
    ]
    if requests := _new_hosts(plan, change):
        questions.append(partial(hosts.preview, requests))
    if said := _shared(change):
        # By the name that the ledger has: a plan may rename the fleet.
        name = change.moved_from or change.key.name
        questions.append(partial(hosts.preview_shared, name, there.get(name, ()), said))
    return questions


async def _preview_disk(hosts: RoutedHosts, disk: VolumeRequest) -> Sequence[PreviewedChange]:
    return await hosts.volume_provider(disk.provider).preview(disk)


async def _answers(
    asked: Mapping[str, Sequence[_Question]],
) -> dict[str, Sequence[PreviewedChange] | ProviderError]:
    answers = await asyncio.gather(*map(_answer, asked.values()))
    return dict(zip(asked, answers, strict=True))


async def _answer(questions: Sequence[_Question]) -> Sequence[PreviewedChange] | ProviderError:
    try:
        return [one for question in questions for one in await question()]
    except ProviderError as problem:
        return problem


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
        if step.verb == Verb.VOLUME_MAKE and DISK in step.arguments
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

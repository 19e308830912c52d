"""
Adds to a plan what clouds say of it: the resources that it creates, updates and deletes there, before anything is changed.

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
from fleetform.app.unknown_instances import UnknownInstances
from fleetform.model.instance import CLOUDS, request_of
from fleetform.model.offers import terms_of, with_offer
from fleetform.model.plan import Action
from fleetform.model.rollout import MAX_UNAVAILABLE
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
from fleetform.views.plan.notes import hosts_removed
from fleetform.views.plan.offers import (
    asked_offers,
    host_by_demand,
    hosts_created,
    hosts_replaced,
    scaling_of,
)
from fleetform.views.plan.preview import preview_name
from fleetform.views.plan.rollouts import update_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Change, Plan, Step
    from fleetform.providers.routing import RoutedHosts

    _Question = Callable[[], Awaitable[Sequence[PreviewedChange]]]


def previewed(workspace: Workspace, plan: Plan) -> Plan:
    """Return the plan that apply shows: with a preview where it changes instances or disks of clouds."""
    if not any(
        _new_hosts(plan, change)
        or _released(plan, change)
        or _disk_steps(change)
        or _shared(change)
        for change in plan.changes
    ):
        return plan
    return with_preview(workspace, plan)


def with_preview(workspace: Workspace, plan: Plan) -> Plan:
    """
    Return the plan with `preview` in its annex: by fleet, or by `volume/NAME`, the resources that its change creates, updates or deletes.

    `preview_failed` has, by the same names, why a cloud or the engine does not say. A preview that fails leaves those of the
    others as they are.
    """
    hosts = routed_hosts(workspace)
    has_others = any(_shared(change) or _released(plan, change) for change in plan.changes)
    there = _hosts_by_fleet(workspace) if has_others else {}
    unknown = UnknownInstances(workspace, hosts)
    asked = {
        preview_name(change.key): questions
        for change in plan.changes
        if (questions := _questions(hosts, unknown, plan, change, there))
    }
    by_demand = _by_demand(plan)
    for fleet, requests in by_demand.items():
        asked[fleet] = _creation(hosts, unknown, requests)
    found = asyncio.run(_answers(asked))
    failed = {
        # Runs may be submitted, and wait, whatever is wrong with the fleet.
        name: {**_failure(one), **({"passes": True} if name in by_demand else {})}
        for name, one in found.items()
        if isinstance(one, ProviderError)
    }
    preview = {
        name: [_row(change) for change in one]
        for name, one in found.items()
        if one and not isinstance(one, ProviderError)
    }
    depth = {"depth": "preview"} if found and plan.annex["depth"] == "ledger" else {}
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
        name if "/" in name else f"fleet/{name}": one
        for name, one in plan.annex.get("preview_failed", {}).items()
        if not (or_passes and one["passes"])
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
    unknown: UnknownInstances,
    plan: Plan,
    change: Change,
    there: Mapping[str, Sequence[InstanceRequest]],
) -> list[_Question]:
    """Return what providers are asked of one change, in the order of its rows."""
    questions: list[_Question] = [
        partial(_preview_disk, hosts, step) for step in _disk_steps(change)
    ]
    # By the name that the ledger has: a plan may rename the fleet.
    name = change.moved_from or change.key.name
    requests, released = _new_hosts(plan, change), _released(plan, change)
    gone = [one for one in there.get(name, ()) if one.name in released]
    emptied = len(gone) == len(there.get(name, ())) and _is_emptied(change, len(gone))
    if requests:
        replaced = len(gone) if change.action is Action.REPLACE else len(_replaced(change))
        regions = [one["region"] for one in asked_offers(plan, change)]
        questions += _creation(hosts, unknown, requests, regions, replaced, emptied=emptied)
    if gone:
        # With its last host a fleet loses what its hosts share.
        questions.append(partial(hosts.preview_release, gone, () if emptied else requests))
    if said := _shared(change):
        questions.append(partial(hosts.preview_shared, name, there.get(name, ()), said))
    return questions


def _creation(
    hosts: RoutedHosts,
    unknown: UnknownInstances,
    requests: Sequence[InstanceRequest],
    regions: Sequence[str] = (),
    replaced: int = 0,
    *,
    emptied: bool = False,
) -> list[_Question]:
    """Return what is asked of a cloud before hosts of a fleet are created; without regions, in that of the first."""

    async def refuse_unknown() -> Sequence[PreviewedChange]:
        await unknown.refuse(requests[0], regions or [requests[0].endpoint["region"]])
        return ()

    return [refuse_unknown, partial(hosts.preview, requests, replaced, emptied=emptied)]


async def _preview_disk(hosts: RoutedHosts, step: Step) -> Sequence[PreviewedChange]:
    name = step.resource.name
    request = VolumeRequest(uid=name, name=name, **step.arguments[DISK])
    provider = hosts.volume_provider(request.provider)
    if step.verb in {Verb.VOLUME_MAKE, Verb.VOLUME_UPDATE}:
        return await provider.preview(request)
    return await provider.preview_delete(request, with_snapshot=step.verb == Verb.VOLUME_SNAPSHOT)


async def _answers(
    asked: Mapping[str, Sequence[_Question]],
) -> dict[str, Sequence[PreviewedChange] | ProviderError]:
    answers = await asyncio.gather(*map(_answer, asked.values()))
    return dict(zip(asked, answers, strict=True))


async def _answer(questions: Sequence[_Question]) -> Sequence[PreviewedChange] | ProviderError:
    answers = await asyncio.gather(*(ask() for ask in questions), return_exceptions=True)
    found: list[PreviewedChange] = []
    for answer in answers:
        if isinstance(answer, ProviderError):
            return answer
        if isinstance(answer, BaseException):
            raise answer
        found += answer
    return found


def _hosts_by_fleet(workspace: Workspace) -> dict[str, list[InstanceRequest]]:
    book = workspace.read(lambda reader: reader.read_book([]), None)
    found: dict[str, list[InstanceRequest]] = {}
    for one in book.instances if book else ():
        found.setdefault(one.fleet, []).append(request_of(one))
    return found


def _by_demand(plan: Plan) -> dict[str, list[InstanceRequest]]:
    """Return what is asked of clouds for the hosts that fleets which do not change create for waiting runs."""
    changed = {change.key.name for change in plan.changes if change.key.kind == "fleet"}
    demand: Mapping[str, Mapping[str, Any]] = plan.annex.get("forecast", {}).get("demand", {})
    return {
        fleet: [
            InstanceRequest(
                "", f"{fleet}-{number}", fleet, {},
                provider=one["provider"], endpoint=one["endpoint"],
            )
            for number in range(one["hosts"])
        ]
        for fleet, one in demand.items()
        if one["provider"] in CLOUDS and fleet not in changed
    }  # fmt: skip


def _row(change: PreviewedChange) -> dict[str, Any]:
    """Return a previewed change as the annex has it: `properties` only where some differ."""
    return {name: value for name, value in dataclasses.asdict(change).items() if value}


def _shared(change: Change) -> Mapping[str, Any]:
    """Return what the hosts of a fleet share after its change; empty: nothing that exists by now."""
    updates = (step for step in change.steps if step.verb == Verb.FLEET_UPDATE)
    return next((step.arguments.get("shared", {}) for step in updates), {})


def _disk_steps(change: Change) -> list[Step]:
    """Return the steps that create, grow or delete a disk."""
    steps = (step for step in change.steps if DISK in step.arguments)
    # A disk that is released stays as it is.
    return [step for step in steps if step.verb != Verb.VOLUME_FORGET]


def _is_emptied(change: Change, hosts: int) -> bool:
    """Tell whether the change of a fleet with so many hosts, all of which leave, releases all of them before it creates one."""
    if change.action is Action.REPLACE:
        return hosts > 0
    update = update_of(change)
    return update.get("strategy") != "surge" and 0 < hosts <= update.get(
        "max_unavailable", MAX_UNAVAILABLE
    )


def _replaced(change: Change) -> frozenset[str]:
    """Name the hosts in whose place others are created."""
    return frozenset(hosts_replaced(change))


def _released(plan: Plan, change: Change) -> frozenset[str]:
    """Name the hosts of a cloud that leave."""
    arguments = [step.arguments for step in change.steps]
    if not any("cloud" in one or "cloud" in one.get("shared", ()) for one in arguments):
        return frozenset()
    return _replaced(change) | {*hosts_removed(plan, change)}


def _new_hosts(plan: Plan, change: Change) -> list[InstanceRequest]:
    """
    Return what is asked of a cloud for each host that a change creates, also in the place of another one.

    Of a fleet that has no host until a run needs one, it is what is asked for the first of them.
    """
    replaced = _replaced(change)
    new = {*hosts_created(plan, change), *replaced}
    first = next(iter(asked_offers(plan, change)), None)
    places = {
        place["name"]: place
        for step in change.steps
        for place in step.arguments.get("instances", ())
    }
    if scaling := scaling_of(change):
        places |= {name: {"name": name, **scaling["host"]} for name in replaced - places.keys()}
    if host := host_by_demand(change):
        name = f"{change.key.name}-0"
        places, new = {name: {"name": name, **host}}, {name}
    return [
        InstanceRequest(
            "", name, change.key.name, {},
            provider=place["provider"],
            endpoint=with_offer(place["endpoint"], terms_of(first or place["endpoint"])),
        )
        for name, place in places.items()
        if place.get("provider") in CLOUDS and name in new
    ]  # fmt: skip

"""
Which instances of a cloud stay when their fleet declares other regions, zones, types or resources: those that it could create now.

The others are replaced as `update` says. The step names both, so the ledger chooses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.offers import CHOSEN_ZONE, identity_of
from fleetform.model.plan import Change, Step
from fleetform.model.rollout import SURGE
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft
from fleetform.plan.kinds.fleet import recreated_hosts_impact, root_gb, template_of, was_made
from fleetform.spec import fields
from fleetform.spec.names import region_of

if TYPE_CHECKING:
    from fleetform.providers.offers.catalogue import Offer

__all__ = ["keep_fitting_hosts"]

_LISTS = ("regions", "availability_zones", "instance_types", "resources")
"""Fields that choose among offers; all others of a template are of each instance."""


def keep_fitting_hosts(draft: PlanDraft) -> None:
    """Put into the change of each fleet's template which instances stay, and why the others do not."""
    for key in sorted(draft.changes):
        change = draft.changes[key]
        row, declared = draft.present.get(draft.row_key(change)), draft.wanted.get(key)
        if key.kind != "fleet" or row is None or declared is None or not was_made(row):
            continue
        if any(step.verb == Verb.FLEET_UPDATE for step in change.steps):
            hosts = _outdated(draft, change, template_of(row.parsed), declared.document)
            if hosts:
                offers = draft.live.offers[key.name].offers
                draft.changes[key] = _sorted(
                    draft, change, row.parsed, declared.document, hosts, offers
                )


def _outdated(
    draft: PlanDraft, change: Change, template: str, after: Mapping[str, Any]
) -> tuple[Instance, ...]:
    """Return the instances of the template that the change ends; empty: it ends none."""
    if "aws" not in after or template == template_of(after):
        return ()
    fleet = draft.row_key(change).name
    return tuple(
        one
        for one in draft.live.instances
        if one.fleet == fleet
        # One that was never created leaves its place to one of the new template.
        and one.is_created
        and one.state is not InstanceState.TERMINATING
        and one.template_digest == template
    )


def _sorted(
    draft: PlanDraft,
    change: Change,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    hosts: tuple[Instance, ...],
    offers: tuple[Offer, ...],
) -> Change:
    is_alike = template_of({**before, **{name: after.get(name) for name in _LISTS}}) == template_of(
        after
    ) and root_gb(before) == root_gb(after)
    # One that the fleet no longer has is removed, whatever it is created from.
    wanted = {
        place["number"] for step in change.steps for place in step.arguments.get("instances", ())
    }
    # One that came early leaves again if the host of its place stays.
    fleet, mine = draft.row_key(change).name, {"", template_of(after)}
    filled = {
        one.number
        for one in draft.live.instances
        if one.fleet == fleet
        and one.template_digest in mine
        and one.state is not InstanceState.TERMINATING
    }
    staying = [one for one in hosts if one.number % SURGE in wanted - filled]
    why = {
        one.name: _why_not(one, after, offers) if is_alike else _changes(change) for one in staying
    }
    replaced = {name: text for name, text in why.items() if text}
    kept = sorted(one.uid for one in staying if one.name not in replaced)
    steps = tuple(_with_hosts(step, kept, replaced) for step in change.steps)
    change = replace(change, steps=steps)
    if change.key in draft.hastened or not change.destructive:
        return change
    return replace(
        change,
        destructive=bool(replaced),
        at_stake=recreated_hosts_impact(sorted(replaced)) if replaced else "",
    )


def _changes(change: Change) -> str:
    """Name the changed fields by which every instance is created: `` `aws.image` and `sharing` change ``."""
    paths = [
        f"`{one.path}`"
        for one in change.fields
        if fields.row("fleet", one.path).on_change is fields.OnChange.HOSTS
    ]
    return f"{', '.join(paths)} change{'s' if len(paths) == 1 else ''}"


def _with_hosts(step: Step, kept: list[str], replaced: Mapping[str, str]) -> Step:
    if step.verb != Verb.FLEET_UPDATE:
        return step
    hosts = {"keeps": kept, "unfit": dict(replaced)}
    named = {name: hosts[name] for name in hosts if hosts[name]}
    return replace(step, arguments={**step.arguments, **named})


def _why_not(instance: Instance, after: Mapping[str, Any], offers: tuple[Offer, ...]) -> str:
    """Say why the fleet would not create an instance like this one now; empty: it would."""
    kind, region, zone, is_spot = identity_of(instance.endpoint)
    # Where the fleet named no zone, the cloud has chosen one.
    zone = zone or instance.endpoint.get(CHOSEN_ZONE, "")
    zones, types = after.get("availability_zones"), after.get("instance_types")
    if region not in after["regions"]:
        return f"{region} is no longer in `regions`"
    in_region = [one for one in zones or () if region_of(one) == region]
    if zones is not None and zone not in in_region:
        return f"{zone or 'its zone'} is not in `availability_zones`"
    if types is not None and kind not in types:
        return f"{kind} is no longer in `instance_types`"
    if any((one.instance_type, one.region, one.spot) == (kind, region, is_spot) for one in offers):
        return ""
    return f"{kind}{' (spot)' if is_spot else ''} no longer satisfies the fleet"

"""
Gives hosts that answer, or that a cloud lists, to their fleets in a rebuilt ledger.

A host keeps its name and its place where it can. Hosts that the fleet does not want any more are adopted too: nothing is released
but by a plan.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.model.apply import StepOutcome
from fleetform.model.figures import counted
from fleetform.model.instance import CLOUDS, LOCAL
from fleetform.model.offers import price_terms
from fleetform.model.recovery import Evidence, Recovered
from fleetform.model.rollout import EARLY, SURGE
from fleetform.spec.desired import ResourceKey
from fleetform.store import fleets
from fleetform.store.database import Transaction, to_json
from fleetform.store.hosts import mark_instance
from fleetform.store.offers import read_offers
from fleetform.store.resources import Context, resource_uid
from fleetform.store.rollouts import env_text
from fleetform.store.scaling import add_places

if TYPE_CHECKING:
    from fleetform.model.plan import Step
    from fleetform.providers.contract.observed import InstanceSeen

__all__ = ["adopt_hosts"]


def adopt_hosts(context: Context, evidence: Evidence, steps: Mapping[str, Step]) -> list[Recovered]:
    """Give each host of the evidence a row in its fleet; see `adoption.adopt_evidence`."""
    found = []
    by_fleet: dict[str, list[InstanceSeen]] = {}
    released = {
        uid
        for (uid,) in context.transaction.execute(
            "SELECT uid FROM instances WHERE state = 'terminated' AND fleet = ''"
        )
    }
    for instance in evidence.instances:
        # A released host stays released, unless the configuration declares its fleet again.
        if instance.uid not in released or instance.fleet in steps:
            by_fleet.setdefault(instance.fleet, []).append(instance)
    for fleet, seen in sorted(by_fleet.items()):
        step = steps.get(fleet)
        numbers = _numbers(context.transaction, fleet, seen, _most(step))
        instances = [_named(one, numbers[one.uid]) for one in seen]
        for instance in instances:
            _put_instance(context, instance, numbers[instance.uid])
        is_bought = any(one.provider in CLOUDS for one in instances)
        note = _put_fleet(context, fleet, {*numbers.values()}, step, is_bought=is_bought)
        hosts = ", ".join(one.name for one in instances)
        found.append(Recovered("fleet", fleet, "present", f"hosts {hosts}", note))
        found += [Recovered("host", one.name, *_found_as(one, evidence)) for one in instances]
    return found


def _named(instance: InstanceSeen, number: int) -> InstanceSeen:
    """Return an instance of a cloud with the name of its place; other hosts keep theirs."""
    if instance.provider not in CLOUDS or number >= SURGE:
        return instance
    return replace(instance, name=f"{instance.fleet}-{number}")


def _found_as(instance: InstanceSeen, evidence: Evidence) -> tuple[str, str]:
    if instance.uid in evidence.hosts:
        return "ready", "its agent answers"
    if instance.uid in evidence.without_agent:
        return "provisioning", "it has no agent yet"
    return "lost", "declared lost"


def _put_instance(context: Context, instance: InstanceSeen, number: int) -> None:
    transaction = context.transaction
    has_settled = number < SURGE and instance.name.endswith(EARLY)
    # The instance has the place by now, and the name of that place.
    name = f"{instance.fleet}-{number}" if has_settled else instance.name
    taken = transaction.execute(
        "SELECT uid, provider FROM instances WHERE fleet = ? AND number = ?"
        " AND state <> 'terminated' AND uid <> ?",
        (instance.fleet, number, instance.uid),
    ).fetchall()
    for uid, provider in taken:
        if provider in CLOUDS:
            fleets.vacate(transaction, uid, instance.fleet, now_ms=context.now_ms)
            continue
        message = f"{instance.name} is now a different instance"
        mark_instance(transaction, uid, state="terminated", message=message, now_ms=context.now_ms)
    put = transaction.execute(
        "INSERT INTO instances (uid, name, fleet, number, state, address, provider, endpoint,"
        " declared) VALUES (?1, ?2, ?3, ?4, 'provisioning', '127.0.0.1', ?5, ?6, ?7)"
        # A released instance has no fleet.
        " ON CONFLICT (uid) DO UPDATE SET state = 'provisioning', fleet = excluded.fleet,"
        " number = excluded.number, name = excluded.name, message = ''"
        " WHERE instances.state = 'terminated'",
        (
            instance.uid, name, instance.fleet, number, instance.provider,
            to_json(instance.endpoint) if instance.endpoint else "", to_json(instance.declared),
        ),
    )  # fmt: skip
    if put.rowcount and instance.provider in CLOUDS:
        _describe_bought(context, instance)


def _describe_bought(context: Context, instance: InstanceSeen) -> None:
    """Write what an instance of a cloud is, and what its fleet says of its hosts now."""
    transaction = context.transaction
    row = transaction.one(
        "SELECT document, outputs FROM resources WHERE kind = 'fleet' AND name = ?",
        (instance.fleet,),
    )
    document, kept = (json.loads(one or "{}") for one in row or ("", ""))
    price = price_terms(instance.endpoint, read_offers(transaction, instance.fleet))
    transaction.execute(
        "UPDATE instances SET endpoint = ?, address = ?, host_key = ?, created_at_ms = ?,"
        " sharing = ?, blocks = ?, template_digest = ?, env = ?, run_as = ? WHERE uid = ?",
        (
            to_json({**instance.endpoint, **price}), instance.endpoint["hostname"],
            instance.host_key, instance.created_at_ms, document.get("sharing", "exact"),
            document.get("blocks", 1), kept.get("template", ""), env_text(document),
            document.get("run_as", ""), instance.uid,
        ),
    )  # fmt: skip
    said = f"{context.who} adopted host {instance.name}: {instance.endpoint['id']}"
    transaction.log("host.adopted", context.now_ms, said, ResourceKey("fleet", instance.fleet))


def _most(step: Step | None) -> int | None:
    """How many hosts the configuration lets a fleet have; None: it does not say."""
    if step is None:
        return None
    scaling = step.arguments.get("scaling")
    return int(scaling["max"]) if scaling else len(step.arguments["instances"])


def _numbers(
    transaction: Transaction, fleet: str, instances: Sequence[InstanceSeen], most: int | None
) -> dict[str, int]:
    """
    Read the numbers of instances from their names, by uid.

    An instance that was created before the host that it replaces left has a number above `SURGE`, or the place of that host
    if that has left; its name is the same in both cases. Instances of a cloud take places that the fleet wants, of which there
    are `most`, before others, also those of instances that were never created.
    """
    known = dict(
        transaction.execute(
            "SELECT uid, number FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
        )
    )
    found = {one.uid: known[one.uid] for one in instances if one.uid in known}
    places = _places(transaction, fleet)
    for one in instances:
        if one.uid in found or one.name.endswith(EARLY):
            continue
        if one.provider == LOCAL:
            found[one.uid] = _number(one.name, fleet)
        elif one.provider not in CLOUDS and one.name in places:
            # A row that no host has answered for, made for this one: it gives way.
            found[one.uid] = places[one.name]
    taken = {*known.values(), *found.values()} - _uncreated(transaction, fleet)
    free = (number for number in itertools.count() if number not in taken)
    for one in instances:
        if one.uid in found or one.provider not in CLOUDS or one.name.endswith(EARLY):
            continue
        number = _number(one.name, fleet)
        is_wanted = one.name == f"{fleet}-{number}" and (most is None or number < most)
        found[one.uid] = number if is_wanted and number not in taken else next(free)
        taken.add(found[one.uid])
    for one in instances:
        if one.uid not in found and one.provider not in {LOCAL, *CLOUDS}:
            # Known by name: any number is as good as the other.
            found[one.uid] = next(free)
            taken.add(found[one.uid])
    for one in instances:
        if one.uid not in found:
            number = _number(one.name.removesuffix(EARLY), fleet)
            found[one.uid] = number + SURGE if number in taken else number
            taken.add(number)
    return found


def _uncreated(transaction: Transaction, fleet: str) -> set[int]:
    """Return the numbers of instances that no cloud has created yet, as far as the ledger knows."""
    rows = transaction.execute(
        "SELECT number, provider, endpoint FROM instances WHERE fleet = ? AND state <> 'terminated'",
        (fleet,),
    )
    return {
        number
        for number, provider, endpoint in rows
        if provider in CLOUDS and "id" not in json.loads(endpoint or "{}")
    }


def _places(transaction: Transaction, fleet: str) -> dict[str, int]:
    """Return the numbers of a fleet's hosts by name."""
    rows = transaction.execute(
        "SELECT name, number FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
    )
    return dict(rows.fetchall())


def _number(name: str, fleet: str) -> int:
    digits = name.removeprefix(f"{fleet}-")
    return int(digits) if digits.isdigit() else 0


def _put_fleet(
    context: Context,
    fleet: str,
    numbers: AbstractSet[int],
    step: Step | None,
    *,
    is_bought: bool,
) -> str:
    """Give the fleet a row if it has none; returns what the next plan does about it."""
    key = ResourceKey("fleet", fleet)
    if resource_uid(context.transaction, key):
        add_places(context.transaction, fleet, numbers)
        return _surplus(numbers, _most(step)) if is_bought else ""
    wanted = (
        {place["number"] for place in fleets.numbered(context.transaction, step)} if step else set()
    )
    # The step of a rebuild has no offers, by which a fleet on a cloud creates its hosts.
    if step is not None and wanted == numbers and not is_bought:
        fleets.begin_make(context, step)
        fleets.finish_write(context, [step], [StepOutcome(step.key)])
        return "as the configuration declares it"
    # Without a digest it differs from whatever is declared, and the next plan shows how.
    context.transaction.execute(
        "INSERT INTO resources (kind, name, uid, type, generation, state, document)"
        " VALUES ('fleet', ?, ?, 'fleet', 1, 'present', '{}')",
        (fleet, context.ids.uid()),
    )
    if step is None:
        return "not in the configuration"
    if wanted == numbers:
        return "the next apply chooses the offers for more hosts"
    return "the configuration declares other hosts"


def _surplus(numbers: AbstractSet[int], most: int | None) -> str:
    more = 0 if most is None else sum(most <= number < SURGE for number in numbers)
    return (
        f"{counted(more, 'host')} more than `nodes`: its next change releases them" if more else ""
    )

"""
Gives hosts that answer, or that a cloud lists, to their fleets in a rebuilt ledger.

A host keeps its name and its place where it can. Hosts that the fleet does not want any more are adopted too: nothing is released
but by a plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from fleetform.model.apply import StepOutcome
from fleetform.model.instance import LOCAL
from fleetform.model.recovery import Evidence, Recovered
from fleetform.model.rollout import EARLY, SURGE
from fleetform.spec.desired import ResourceKey
from fleetform.store import fleets
from fleetform.store.database import Transaction, to_json
from fleetform.store.hosts import mark_instance
from fleetform.store.resources import Context, resource_uid

if TYPE_CHECKING:
    from fleetform.model.plan import Step
    from fleetform.providers.contract.observed import InstanceSeen

__all__ = ["adopt_hosts"]


def adopt_hosts(
    context: Context, evidence: Evidence, steps: Mapping[str, Step]
) -> list[Recovered]:
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
    for fleet, instances in sorted(by_fleet.items()):
        numbers = _numbers(context.transaction, fleet, instances)
        for instance in instances:
            _put_instance(context, instance, numbers[instance.uid])
        note = _put_fleet(context, fleet, {*numbers.values()}, steps.get(fleet))
        hosts = ", ".join(one.name for one in instances)
        found.append(Recovered("fleet", fleet, "present", f"hosts {hosts}", note))
        for instance in instances:
            answers = instance.uid in evidence.hosts
            found.append(
                Recovered(
                    "host",
                    instance.name,
                    "ready" if answers else "lost",
                    "its agent answers" if answers else "declared lost",
                )
            )
    return found


def _put_instance(context: Context, instance: InstanceSeen, number: int) -> None:
    transaction = context.transaction
    has_settled = number < SURGE and instance.name.endswith(EARLY)
    # The instance has the place by now, and the name of that place.
    name = f"{instance.fleet}-{number}" if has_settled else instance.name
    taken = transaction.execute(
        "SELECT uid FROM instances WHERE fleet = ? AND number = ? AND state <> 'terminated'"
        " AND uid <> ?",
        (instance.fleet, number, instance.uid),
    ).fetchall()
    for (uid,) in taken:
        message = f"{instance.name} is now a different instance"
        mark_instance(transaction, uid, state="terminated", message=message, now_ms=context.now_ms)
    transaction.execute(
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


def _numbers(
    transaction: Transaction, fleet: str, instances: Sequence[InstanceSeen]
) -> dict[str, int]:
    """
    Read the numbers of instances from their names, by uid.

    An instance that was created before the host that it replaces left has a number above `SURGE`, or the place of that host
    if that has left; its name is the same in both cases.
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
        elif one.name in places:
            # A row that no host has answered for, made for this one: it gives way.
            found[one.uid] = places[one.name]
    taken = {*known.values(), *found.values()}
    free = (number for number in itertools.count() if number not in taken)
    for one in instances:
        if one.uid not in found and one.provider != LOCAL:
            # Known by name: any number is as good as the other.
            found[one.uid] = next(free)
            taken.add(found[one.uid])
    for one in instances:
        if one.uid not in found:
            number = _number(one.name.removesuffix(EARLY), fleet)
            found[one.uid] = number + SURGE if number in taken else number
            taken.add(number)
    return found


def _places(transaction: Transaction, fleet: str) -> dict[str, int]:
    """Return the numbers of a fleet's hosts by name."""
    rows = transaction.execute(
        "SELECT name, number FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
    )
    return dict(rows.fetchall())


def _number(name: str, fleet: str) -> int:
    digits = name.removeprefix(f"{fleet}-")
    return int(digits) if digits.isdigit() else 0


def _put_fleet(context: Context, fleet: str, numbers: AbstractSet[int], step: Step | None) -> str:
    """Give the fleet a row if it has none; returns what the next plan does about it."""
    key = ResourceKey("fleet", fleet)
    if resource_uid(context.transaction, key):
        return ""
    wanted = (
        {place["number"] for place in fleets.numbered(context.transaction, step)} if step else set()
    )
    if step is not None and wanted == numbers:
        fleets.begin_make(context, step)
        fleets.finish_write(context, [step], [StepOutcome(step.key)])
        return "as the configuration declares it"
    # Without a digest it differs from whatever is declared, and the next plan shows how.
    context.transaction.execute(
        "INSERT INTO resources (kind, name, uid, type, generation, state, document)"
        " VALUES ('fleet', ?, ?, 'fleet', 1, 'present', '{}')",
        (fleet, context.ids.uid()),
    )
    return (
        "the configuration declares other hosts" if step is not None else "not in the configuration"
    )

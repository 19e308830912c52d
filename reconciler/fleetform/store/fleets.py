"""
Rows of fleets and of their instances: wanted, leaving, terminated.

An update only marks the instances that leave: an instance may still run jobs, and the step is done without it. The
controller of runs releases it once no job is on it, and `retire` records that.

A fleet that could not be created completely keeps its row, without a digest: the next plan shows what is still missing,
and its removal releases what was created.
"""

from __future__ import annotations

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
import itertools
import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from fleetform.lifecycle.offers import created as as_created
from fleetform.model.drift import GONE, TABLE, Drift, RecordedDrift
from fleetform.model.figures import counted
from fleetform.model.instance import CLOUDS, LOCAL
from fleetform.model.offers import CHOSEN_ZONE
from fleetform.model.rollout import EXCHANGED, EXCHANGED_TEXTS, SURGE, UNWANTED
from fleetform.model.scaling import numbers_kept, places_kept
from fleetform.model.verbs import Verb
from fleetform.providers.contract.hosts import BATCH_MAX, CreatedHost
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json
from fleetform.store.hosts import forget_jobs, lose_jobs
from fleetform.store.observations import heal, note_observations, read_drift
from fleetform.store.offers import drop_offers, keep_offers
from fleetform.store.overrides import end_quarantine
from fleetform.store.resources import SHOWN_VERBS, Context, delete_resource, write_resource
from fleetform.store.rollouts import (
    env_text,
    offered_capacity,
    stack_endpoint,
    template_outputs,
)
from fleetform.store.scaling import give_up_place

if TYPE_CHECKING:
    from fleetform.model.apply import StepOutcome
    from fleetform.model.plan import Step

__all__ = [
    "begin_adopt",
    "begin_make",
    "begin_remove",
    "begin_update",
    "finish_forget",
    "finish_remove",
    "finish_write",
    "note_created",
    "note_ended",
    "retire",
    "vacate",
]


def begin_make(context: Context, step: Step) -> None:
    context.transaction.execute(
        "INSERT INTO resources (kind, name, uid, type, state, document, operation)"
        " VALUES ('fleet', ?, ?, 'fleet', 'making', '{}', ?) ON CONFLICT DO NOTHING",
        (step.resource.name, context.ids.uid(), context.apply_uid),
    )
    begin_update(context, step)


def begin_update(context: Context, step: Step) -> None:
    """Give each wanted place an instance; instances in places that are not wanted begin to leave."""
    fleet = step.resource.name
    _lose(context, step)
    _give_up(context, step)
    _keep(context, step)
    _renew(context, step)
    places = numbered(context.transaction, step)
    wanted = {place["number"] for place in places}
    there = {*_numbers(context.transaction, fleet).values()}
    new = sorted((one for one in places if one["number"] not in there), key=itemgetter("number"))
    uids = [context.ids.uid() for _ in new]
    context.transaction.many(
        "INSERT INTO instances (uid, name, fleet, number, state, address, provider, endpoint,"
        " cpu_millicores, memory_bytes, gpus)"
        " VALUES (?, ?, ?, ?, 'provisioning', '127.0.0.1', ?, ?, ?, ?, ?)",
        (
            (
                uids[position],
                one["name"],
                fleet,
                one["number"],
                one.get("provider", LOCAL),
                _bought(one, batch_uid=uids[position - position % BATCH_MAX], fleet=fleet),
                *offered_capacity(one),
            )
            for position, one in enumerate(new)
        ),
    )
    _describe(context.transaction, step, places)
    keep_offers(context.transaction, step)
    # An instance that stands in for another one stays until that one is gone.
    standing_in = {number for number in there if number - SURGE in wanted}
    _leave(context.transaction, fleet, sorted(there - wanted - standing_in))


def _bought(place: Mapping[str, Any], *, batch_uid: str, fleet: str) -> str:
    """Return the endpoint with which an instance of a cloud is created, and empty text for other hosts."""
    if place.get("provider") not in CLOUDS:
        return ""
    return to_json(stack_endpoint(place, batch_uid=batch_uid, fleet=fleet))


def numbered(transaction: Transaction, step: Step) -> list[dict[str, Any]]:
    """
    Return the hosts that a step of a fleet wants, each with its number.

    A host that the plan knows by its name alone keeps the number that it has; a new one has the
    lowest that is free. A fleet whose hosts follow demand keeps those that it has by now, within its limits.
    """
    places: list[dict[str, Any]] = step.arguments["instances"]
    if "scaling" in step.arguments and (now := _scaled(transaction, step)) is not None:
        return now
    if all("number" in place for place in places):
        return places
    known = _numbers(transaction, step.resource.name)
    taken = set(known.values())
    free = (number for number in itertools.count() if number not in taken)
    return [
        {**place, "number": known[place["name"]] if place["name"] in known else next(free)}
        for place in places
    ]


def _scaled(transaction: Transaction, step: Step) -> list[dict[str, Any]] | None:
    """Return the hosts that a fleet has by demand, within the limits of a step; None before it was created."""
    fleet, scaling = step.resource.name, step.arguments["scaling"]
    row = transaction.one(
        "SELECT generation FROM resources WHERE kind = 'fleet' AND name = ?", (fleet,)
    )
    if row is None or not row[0]:
        return None
    there = transaction.execute(
        "SELECT number, EXISTS (SELECT 1 FROM allocations a WHERE a.instance_uid = instances.uid)"
        " FROM instances WHERE fleet = ? AND state NOT IN ('terminating', 'terminated')",
        (fleet,),
    ).fetchall()
    kept = numbers_kept(
        {number % SURGE for number, _ in there},
        {number % SURGE for number, is_busy in there if is_busy},
        least=scaling["min"],
        most=scaling["max"],
    )
    return places_kept(fleet, scaling, kept)


def _numbers(transaction: Transaction, fleet: str) -> dict[str, int]:
    """Return the numbers of the fleet's instances that are not terminated, by name."""
    rows = transaction.execute(
        "SELECT name, number FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
    )
    return dict(rows.fetchall())


def _lose(context: Context, step: Step) -> None:
    """Write down that hosts never return, as the configuration declares: their jobs have ended."""
    for name, reason in step.arguments.get("lost", {}).items():
        row = context.transaction.one(
            "UPDATE instances SET state = 'terminated', message = ?, generation = generation + 1"
            " WHERE fleet = ? AND name = ? AND state <> 'terminated' RETURNING uid",
            (f"declared lost: {reason}", step.resource.name, name),
        )
        if row is not None:
            why = f"host {name} is declared lost: {reason}"
            lose_jobs(context.transaction, row[0], why, now_ms=context.now_ms)
            end_quarantine(context.transaction, name, now_ms=context.now_ms)
            context.transaction.log("host.lost", context.now_ms, why, step.resource)


def _give_up(context: Context, step: Step) -> None:
    """Write down that instances of clouds no longer exist: their jobs have ended, and others take their places."""
    for uid, why in step.arguments.get("ended", {}).items():
        _leave_place(context.transaction, uid, step.resource.name, why, now_ms=context.now_ms)


def _keep(context: Context, step: Step) -> None:
    """Give instances of clouds that the fleet could create now its new template, so that no rollout replaces them."""
    context.transaction.many(
        "UPDATE instances SET template_digest = ? WHERE uid = ? AND fleet = ?",
        (
            (step.arguments["template"], uid, step.resource.name)
            for uid in step.arguments.get("keeps", ())
        ),
    )


def _leave_place(transaction: Transaction, uid: str, fleet: str, why: str, *, now_ms: int) -> None:
    """
    Have an instance of a cloud that no longer exists leave its place at once.

    It leaves under a number that no place has, because its provider still has a record of it, which is released.
    """
    known = transaction.one("SELECT ended_at_ms FROM instances WHERE uid = ?", (uid,))
    name = vacate(transaction, uid, fleet, now_ms=now_ms)
    if name:
        said, key = f"host {name} is gone: {why}", ResourceKey("fleet", fleet)
        lose_jobs(transaction, uid, said, now_ms=now_ms)
        forget_jobs(transaction, uid)
        end_quarantine(transaction, name, now_ms=now_ms)
        heal(transaction, key, part=name)
        if known is None or known[0] is None:
            transaction.log("host.lost", now_ms, said, key)


def _renew(context: Context, step: Step) -> None:
    """Have instances of clouds that were never created leave their places if their fleet has another template by now."""
    fleet = step.resource.name
    rows = context.transaction.execute(
        f"SELECT uid, endpoint FROM instances WHERE fleet = ? AND {_IS_BOUGHT}"
        " AND template_digest NOT IN ('', ?) AND state NOT IN ('terminating', 'terminated')",
        (fleet, step.arguments.get("template", "")),
    ).fetchall()
    for uid, endpoint in rows:
        if "id" not in json.loads(endpoint):
            # Asked for by the earlier template, which its cloud refuses, it would fail each update of the fleet.
            vacate(context.transaction, uid, fleet, now_ms=context.now_ms)


def vacate(transaction: Transaction, uid: str, fleet: str, *, now_ms: int) -> str:
    """Have an instance of a cloud leave under a number that no place has, and return its name; empty: it has left."""
    row = transaction.one(
        "UPDATE instances SET state = 'terminating', number = ?, message = '',"
        " ended_at_ms = coalesce(ended_at_ms, ?), generation = generation + 1"
        " WHERE uid = ? AND fleet = ? AND number >= 0 AND state <> 'terminated' RETURNING name",
        (_free_below(transaction, fleet), now_ms, uid, fleet),
    )
    return "" if row is None else str(row[0])


def _free_below(transaction: Transaction, fleet: str) -> int:
    """Return a number below those of all hosts of a fleet, and below 0."""
    row = transaction.one(
        "SELECT min(number) FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
    )
    return min(0, (row[0] or 0) if row is not None else 0) - 1


def begin_adopt(context: Context, step: Step) -> None:
    """
    Give the fleet's places to released hosts, those that it had before first.

    Where there are none the step fails: `import:` means something that exists.
    """
    transaction, fleet = context.transaction, step.resource.name
    released = transaction.execute(
        "SELECT uid, name FROM instances WHERE state = 'terminated' AND fleet = ''"
        " AND provider = ? ORDER BY CASE WHEN message = ? THEN 0 ELSE 1 END, name, uid",
        (_provider_of(step), _released_from(fleet)),
    ).fetchall()
    if released:
        # Rows that the fleet was given in their place, and for which no host has ever answered.
        transaction.execute(
            "UPDATE instances SET state = 'terminated', message = 'a released host has its name',"
            " generation = generation + 1 WHERE fleet = ? AND state <> 'terminated'"
            " AND install_id = '' AND name IN"
            " (SELECT name FROM instances WHERE state = 'terminated' AND fleet = '')",
            (fleet,),
        )
    there = {*_numbers(transaction, fleet).values()}
    wanted = [one for one in numbered(transaction, step) if one["number"] not in there]
    transaction.many(
        "UPDATE instances SET fleet = ?, number = ?, state = 'provisioning', message = '',"
        " generation = generation + 1 WHERE uid = ?",
        ((fleet, number, uid) for number, uid in _adopted(wanted, released)),
    )
    if released:
        begin_make(context, step)


def _provider_of(step: Step) -> str:
    return next((str(one.get("provider", LOCAL)) for one in step.arguments["instances"]), LOCAL)


def _adopted(
    wanted: Sequence[Mapping[str, Any]], released: Sequence[tuple[str, str]]
) -> list[tuple[int, str]]:
    """Pair numbers with uids: shares of a machine are alike, hosts over SSH are known by name."""
    by_name = {name: uid for uid, name in released}
    if any("endpoint" in one for one in wanted):
        return [(one["number"], by_name[one["name"]]) for one in wanted if one["name"] in by_name]
    numbers = sorted(one["number"] for one in wanted)
    return [(number, uid) for number, (uid, _) in zip(numbers, released, strict=False)]


def _released_from(fleet: str) -> str:
    return f"released from fleet {fleet}"


def begin_remove(context: Context, step: Step) -> None:
    _lose(context, step)
    numbers = _numbers(context.transaction, step.resource.name)
    _leave(context.transaction, step.resource.name, sorted(numbers.values()))


def finish_write(context: Context, steps: Sequence[Step], outcomes: Sequence[StepOutcome]) -> None:
    for step, outcome in zip(steps, outcomes, strict=True):
        said = step.arguments
        before = context.transaction.one(
            "SELECT generation FROM resources WHERE kind = 'fleet' AND name = ?",
            (step.resource.name,),
        )
        assert before is not None, f"{step.resource} has no row: was its step begun?"
        outputs = {
            **outcome.outputs,
            **template_outputs(said, numbered(context.transaction, step)),
        }
        write_resource(context.transaction, step.resource, said, outputs)
        _dismiss(context.transaction, step)
        made = "imported" if step.verb == Verb.FLEET_ADOPT else "made"
        verb = "updated" if before[0] else made
        hosts = counted(len(outputs.get("places", said["instances"])), "host")
        context.log(f"fleet.{verb}", f"was {SHOWN_VERBS.get(verb, verb)}: {hosts}", step.resource)


def _dismiss(transaction: Transaction, step: Step) -> None:
    """
    Give single hosts a template of no fleet: then they are replaced like hosts of an earlier template.

    At the end of the step and not at its beginning: the step waits for the existing hosts to answer, and would wait for ever
    for one that has left meanwhile.
    """
    transaction.many(
        "UPDATE instances SET template_digest = ?, generation = generation + 1"
        " WHERE fleet = ? AND name = ? AND state NOT IN ('terminating', 'terminated')",
        ((UNWANTED, step.resource.name, name) for name in step.arguments.get("exchange", ())),
    )


def finish_remove(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        leaving = context.transaction.execute(
            "SELECT uid FROM instances WHERE fleet = ? AND state = 'terminating' ORDER BY number",
            (step.resource.name,),
        ).fetchall()
        for (uid,) in leaving:
            retire(context.transaction, uid, now_ms=context.now_ms)
        drop_offers(context.transaction, step.resource.name)
        delete_resource(context.transaction, step.resource)
        context.log("fleet.removed", "was removed", step.resource)


def finish_forget(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    """
    Release the fleet; its hosts stay up.

    Their rows stay, without a fleet: an unknown host with the uid of this environment would mean that this ledger is not the
    newest.
    """
    for step in steps:
        fleet = step.resource.name
        released = context.transaction.execute(
            "UPDATE instances SET state = 'terminated', fleet = '', message = ?,"
            " generation = generation + 1 WHERE fleet = ? AND state <> 'terminated' RETURNING name",
            (_released_from(fleet), fleet),
        ).fetchall()
        for (name,) in released:
            end_quarantine(context.transaction, name, now_ms=context.now_ms)
        drop_offers(context.transaction, fleet)
        delete_resource(context.transaction, step.resource)
        context.log("fleet.forgotten", "was released; its hosts stay up", step.resource)


# -- instances ----------------------------------------------------------------------------


_IS_BOUGHT = f"(provider IN ({', '.join(repr(one) for one in sorted(CLOUDS))}) AND endpoint <> '')"


# An instance of a cloud is what it was created by, whether it has answered or not.
_IS_OF_TEMPLATE = f"(template_digest IN ('', ?12) OR install_id = '' AND NOT {_IS_BOUGHT})"


_MAY_STAY = f"(NOT {_IS_BOUGHT} OR EXISTS (SELECT 1 FROM allocations a WHERE a.instance_uid = instances.uid))"
"""Of a host that was to leave: its release has not begun, or ends nothing."""


def note_created(
    transaction: Transaction, instance_uid: str, created: CreatedHost, *, now_ms: int
) -> None:
    """See `model.ports.Ledger.note_created`."""
    row = transaction.one(
        "SELECT name, fleet, endpoint FROM instances WHERE uid = ? AND state <> 'terminated'",
        (instance_uid,),
    )
    if row is None:
        return
    name, fleet, before = row
    asked = json.loads(before or "{}")
    endpoint = {**as_created(asked), "id": created.id, "hostname": created.address}
    if created.image:
        endpoint["image"] = created.image
    if created.zone:
        endpoint[CHOSEN_ZONE] = created.zone
    transaction.execute(
        "UPDATE instances SET endpoint = ?, address = ?, host_key = ?, message = '',"
        " created_at_ms = coalesce(created_at_ms, ?), generation = generation + 1 WHERE uid = ?",
        (
            to_json(endpoint),
            created.address,
            created.host_key,
            # The clock of the cloud may be ahead.
            min(created.created_at_ms or now_ms, now_ms),
            instance_uid,
        ),
    )
    if asked.get("id") != created.id:
        said = f"host {name} was created: {created.id} at {created.address}"
        transaction.log("host.created", now_ms, said, ResourceKey("fleet", fleet))


def note_ended(transaction: Transaction, instance_uid: str, why: str, *, now_ms: int) -> None:
    """See `model.cloud_ledger.CloudLedger.note_ended`."""
    row = transaction.one(
        "SELECT name, fleet, endpoint, state, number, ended_at_ms FROM instances"
        " WHERE uid = ? AND state <> 'terminated'",
        (instance_uid,),
    )
    if row is None:
        return
    name, fleet, endpoint, state, number, ended_at_ms = row
    if give_up_place(transaction, fleet, number):
        _leave_place(transaction, instance_uid, fleet, why, now_ms=now_ms)
        return
    said = f"host {name} is gone: {why}"
    lose_jobs(transaction, instance_uid, said, now_ms=now_ms)
    forget_jobs(transaction, instance_uid)
    if state == "terminating":
        return
    transaction.execute(
        "UPDATE instances SET state = 'unreachable', message = ?,"
        " ended_at_ms = coalesce(ended_at_ms, ?), generation = generation + 1 WHERE uid = ?",
        (why, now_ms, instance_uid),
    )
    row_of_table = TABLE["fleet", "host"]
    drift = Drift(
        ResourceKey("fleet", fleet), "host", row_of_table.drift_class, row_of_table.remedy,
        str(json.loads(endpoint)["id"]), GONE, name, by=why,
    )  # fmt: skip
    others = [one for one in read_drift(transaction) if one.place != (drift.resource, drift.path)]
    note_observations(
        transaction, {}, [*others, RecordedDrift(drift, now_ms, now_ms)], at_ms=now_ms
    )
    if ended_at_ms is None:
        transaction.log("host.lost", now_ms, said, drift.resource)


def _describe(transaction: Transaction, step: Step, places: Sequence[Mapping[str, Any]]) -> None:
    """
    Write what the document says of each host into the instances.

    Declared capacity holds before the host has answered, so that a run which can never fit ends
    at once. What is not declared stays as the host reported it.
    """
    document = step.arguments["document"]
    shared: Mapping[str, Any] = document.get("local") or {}
    transaction.many(
        "UPDATE instances SET generation = generation + 1,"
        # How a host is divided holds for the jobs that run there: a host of another template keeps it, unless it has
        # never answered.
        f" sharing = CASE WHEN {_IS_OF_TEMPLATE} THEN ?1 ELSE sharing END,"
        f" blocks = CASE WHEN {_IS_OF_TEMPLATE} THEN ?2 ELSE blocks END,"
        f" template_digest = CASE WHEN {_IS_OF_TEMPLATE} THEN ?12 ELSE template_digest END,"
        " declared = ?3, parts = ?4, cpu_millicores = coalesce(?5, cpu_millicores),"
        " memory_bytes = coalesce(?6, memory_bytes), disk_bytes = coalesce(?7, disk_bytes),"
        " name = ?8, drained = ?11, env = ?13, run_as = ?15,"
        # An instance of a cloud stays as it was created.
        f" endpoint = CASE WHEN {_IS_BOUGHT} THEN endpoint ELSE ?14 END,"
        # An instance that was leaving is wanted again, or a silent one has another address: it is requested again.
        # One of a cloud that no job keeps may be deleted by now: it goes, and its place gets another one.
        f" message = CASE WHEN state = 'terminating' AND NOT {_MAY_STAY}"
        f" THEN '{EXCHANGED}' ELSE message END,"
        f" state = CASE WHEN state = 'terminating' AND {_MAY_STAY}"
        f" OR state IN ('recovering', 'unreachable') AND endpoint <> ?14 AND NOT {_IS_BOUGHT}"
        " THEN 'provisioning' ELSE state END"
        " WHERE fleet = ?9 AND number = ?10 AND state <> 'terminated'",
        (
            (
                document.get("sharing", "exact"),
                document.get("blocks", 1),
                to_json(declared),
                # Only shares of one machine divide what it has.
                1 if "endpoint" in place else len(places),
                declared.get("cpu"),
                declared.get("memory"),
                declared.get("disk"),
                place["name"],
                step.resource.name,
                place["number"],
                place.get("drained", ""),
                step.arguments.get("template", ""),
                env_text(document),
                to_json(place["endpoint"]) if "endpoint" in place else "",
                document.get("run_as", ""),
            )
            for place in places
            for declared in (place.get("declared", shared),)
        ),
    )


def _leave(transaction: Transaction, fleet: str, numbers: Sequence[int]) -> None:
    transaction.many(
        "UPDATE instances SET state = 'terminating', generation = generation + 1"
        " WHERE fleet = ? AND number = ? AND state NOT IN ('terminating', 'terminated')",
        ((fleet, number) for number in numbers),
    )


def retire(transaction: Transaction, instance_uid: str, *, now_ms: int) -> None:
    """
    Record that a leaving instance has left: nothing runs on it any more.

    An instance that is not leaving any more is wanted again meanwhile, and stays. One of a cloud that was released does not
    exist, and its place gets another one.
    """
    row = transaction.one(
        "UPDATE instances SET state = 'terminated', generation = generation + 1,"
        " ended_at_ms = coalesce(ended_at_ms, ?),"
        # This message says that another host takes its place.
        " message = CASE WHEN message IN (?, ?, ?, ?) THEN message ELSE '' END"
        f" WHERE uid = ? AND state <> 'terminated' AND (state = 'terminating' OR {_IS_BOUGHT})"
        " RETURNING name, fleet, endpoint, message, provider, number",
        (now_ms, *EXCHANGED_TEXTS, instance_uid),
    )
    if row is None:
        return
    name, fleet, endpoint, message, provider, number = row
    lose_jobs(transaction, instance_uid, f"host {name} was released", now_ms=now_ms)
    # A rollout gives the machine that a configuration names another agent: what is broken stays so.
    if provider in CLOUDS or not (endpoint and message in EXCHANGED_TEXTS):
        end_quarantine(transaction, name, now_ms=now_ms)
    said = f"host {name} was released"
    if provider in CLOUDS:
        said = _released_text(name, json.loads(endpoint or "{}").get("id"), is_gone=number < 0)
    transaction.log("host.terminated", now_ms, said, ResourceKey("fleet", fleet))


def _released_text(name: str, cloud_id: str | None, *, is_gone: bool) -> str:
    """Say which instance of a cloud has left: the host that takes its place has the same name."""
    if cloud_id is None:
        return f"host {name} was removed: it was never created"
    what = "removed: it no longer exists" if is_gone else "released"
    return f"host {name} ({cloud_id}) was {what}"

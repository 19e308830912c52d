"""
Rollouts of fleets: read from rows, and each move recorded as it is made.

A rollout is under way while a host of the fleet was created from another template, stands in for another one, or has left
its place empty; so a controller that takes over from a dead one finds what is left to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetform.model.instance import CLOUDS, LOCAL
from fleetform.model.rollout import (
    EARLY,
    ENDED,
    EXCHANGED,
    EXCHANGED_TEXTS,
    LEAVING,
    MAX_UNAVAILABLE,
    RESTING,
    RESTING_TEXTS,
    SURGE,
    Exchange,
    Move,
    Template,
)
from fleetform.model.verbs import Verb
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json
from fleetform.store.overrides import rename_targets

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
    from fleetform.model.plan import Plan, Step
    from fleetform.model.ports import Ids
    from fleetform.model.rollout_status import RolloutStatus
    from fleetform.store.statements import Statements
__all__ = [
    "Cordon",
    "closings_of",
    "commit_exchanges",
    "env_text",
    "insert_host",
    "is_exchanged",
    "leaving_fleets",
    "offered_capacity",
    "read_cordon",
    "read_rollouts",
    "read_templates",
    "stack_endpoint",
    "standing_still",
    "template_outputs",
]


def template_outputs(
    said: Mapping[str, Any], places: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """
    Return what is kept of a fleet's step: its template, its places, and how a rollout replaces hosts.

    `places` are the hosts of the step with their numbers. Hosts that are not a share of this machine are kept whole: their
    names and endpoints do not follow from their numbers.
    """
    if not said.get("template"):
        return {}
    outputs = {
        "template": said["template"],
        "places": [place["number"] for place in places],
        "update": said["document"].get("update", {}),
    }
    if "scaling" in said:
        return {**outputs, "scaling": said["scaling"]}
    hosts = {str(place["number"]): place for place in places if "endpoint" in place}
    return {**outputs, "hosts": hosts} if hosts else outputs


def env_text(document: Mapping[str, Any]) -> str:
    """The variables that a fleet gives to its jobs, as an instance keeps them."""
    return to_json(document["env"]) if document.get("env") else ""


def is_exchanged(message: str) -> bool:
    return message in EXCHANGED_TEXTS


def read_templates(connection: Statements) -> dict[str, Template]:
    """Read the templates of fleets with a rollout under way, by name of the fleet."""
    found = {}
    for name, outputs in connection.execute(
        "SELECT name, outputs FROM resources WHERE kind = 'fleet' AND outputs <> ''"
        " AND outputs <> '{}' ORDER BY name"
    ).fetchall():
        kept = json.loads(outputs)
        if "template" in kept:
            template = _template(kept)
            if _is_under_way(connection, name, template):
                found[str(name)] = template
    for name in standing_still(connection) if found else ():
        found.pop(name, None)
    return found


def read_rollouts(
    connection: Statements, read_hosts: Callable[[], Sequence[Instance]]
) -> dict[str, RolloutStatus]:
    """Say of each fleet with a rollout under way how far it is; `read_hosts` is called where there is one."""
    templates = read_templates(connection)
    if not templates:
        return {}
    # Here: few plans are made during a rollout.
    from fleetform.lifecycle.rollout import place_of, status_of

    rows = connection.execute("SELECT DISTINCT instance_uid FROM allocations").fetchall()
    occupied, hosts = {uid for (uid,) in rows}, read_hosts()
    return {
        fleet: status_of(
            template, [place_of(one, template, occupied) for one in hosts if one.fleet == fleet]
        )
        for fleet, template in templates.items()
    }


def standing_still(connection: Statements | Transaction) -> frozenset[str]:
    """
    Name the fleets whose rollout pauses: fleets that are removed or released, and fleets with an open step.

    The intent of a fleet's step gives new hosts the new template, and its outcome gives it to the fleet. In between they
    differ from the template of the fleet, and would be released while the step waits for them.
    """
    rows = connection.execute(
        "SELECT resource_name FROM operations INDEXED BY operations_open"
        # The index is of both states, and SQLite takes it only where both are named.
        " WHERE state IN ('planned', 'intended') AND state = 'intended'"
        " AND resource_kind = 'fleet' AND verb IN ('fleet.make', 'fleet.adopt', 'fleet.update')"
    )
    return leaving_fleets(connection) | {name for (name,) in rows}


def leaving_fleets(connection: Statements | Transaction) -> frozenset[str]:
    """
    Name the fleets that an accepted plan removes or releases, and that still exist.

    Their hosts look as before until the step begins. A job that was placed there in between would end with them, or belong to
    no fleet, and no plan has shown that; and a host that was created in the place of one that has left already would stay.
    """
    rows = connection.execute(
        "SELECT resource_name FROM operations INDEXED BY operations_open"
        # Asked with each step of an apply: of ten thousand open ones those of fleets are few.
        " WHERE state IN ('planned', 'intended') AND resource_kind = 'fleet'"
        " AND verb IN ('fleet.remove', 'fleet.forget')"
    )
    return frozenset(name for (name,) in rows)


def _template(kept: Mapping[str, Any]) -> Template:
    update = kept.get("update", {})
    return Template(
        kept["template"],
        update.get("strategy", "drain"),
        update.get("max_unavailable", MAX_UNAVAILABLE),
        tuple(kept["places"]),
    )


def _is_under_way(connection: Statements, fleet: str, template: Template) -> bool:
    there = connection.execute(
        "SELECT number, template_digest, state, message FROM instances WHERE fleet = ?", (fleet,)
    ).fetchall()
    alive = [row for row in there if row[2] != "terminated"]
    if any(row[1] not in {"", template.digest} or row[0] >= SURGE for row in alive):
        return True
    there_by_now = {row[0] for row in alive if row[2] != "provisioning"}
    left = {row[0] for row in there if row[2] == "terminated" and is_exchanged(row[3])}
    return bool((left - there_by_now) & {*template.places})


# -- moves --------------------------------------------------------------------------------


def commit_exchanges(
    transaction: Transaction,
    fleet: str,
    template: Template,
    moves: Sequence[Exchange],
    *,
    ids: Ids,
    now_ms: int,
) -> None:
    """See `model.ports.Ledger.commit_exchanges`."""
    if fleet in standing_still(transaction) or not _is_wanted(transaction, fleet, template):
        # Meanwhile its removal was entered, or a step of it has begun or ended.
        return
    for one in moves:
        if one.move is Move.MAKE:
            _make(transaction, fleet, one.number, ids.uid(), now_ms)
        elif one.move is Move.SETTLE:
            _settle(transaction, fleet, one)
        elif one.move is Move.REST:
            transaction.execute(
                "UPDATE instances SET drained = ?, generation = generation + 1"
                " WHERE uid = ? AND state <> 'terminated' AND drained = ''",
                (RESTING, one.uid),
            )
        else:
            _leave(transaction, fleet, one, now_ms)


def _is_wanted(transaction: Transaction, fleet: str, template: Template) -> bool:
    row = transaction.one(
        "SELECT outputs FROM resources WHERE kind = 'fleet' AND name = ? AND outputs <> ''",
        (fleet,),
    )
    kept = json.loads(row[0]) if row is not None else {}
    return "template" in kept and _template(kept) == template


def _leave(transaction: Transaction, fleet: str, one: Exchange, now_ms: int) -> None:
    ends = one.move is Move.END
    row = transaction.one(
        "UPDATE instances SET state = 'terminating', message = ?, generation = generation + 1"
        " WHERE uid = ? AND state NOT IN ('terminating', 'terminated')"
        # A job may have been placed there since the rows were read.
        " AND (? = 1 OR NOT EXISTS (SELECT 1 FROM allocations a WHERE a.instance_uid = instances.uid))"
        " RETURNING name",
        (ENDED if ends else EXCHANGED, one.uid, int(ends)),
    )
    if row is not None:
        said = ENDED if ends else EXCHANGED
        transaction.log(
            "host.exchanged",
            now_ms,
            f"host {row[0]} is being released: {said}",
            ResourceKey("fleet", fleet),
        )


def _make(transaction: Transaction, fleet: str, number: int, uid: str, now_ms: int) -> None:
    row = transaction.one(
        "SELECT document, outputs FROM resources WHERE kind = 'fleet' AND name = ?", (fleet,)
    )
    taken = transaction.one(
        "SELECT uid FROM instances WHERE fleet = ? AND number = ? AND state <> 'terminated'",
        (fleet, number),
    )
    if row is None or taken is not None:
        return
    name = insert_host(transaction, fleet, json.loads(row[0]), json.loads(row[1]), number, uid)
    transaction.log(
        "host.making", now_ms, f"host {name} is being created", ResourceKey("fleet", fleet)
    )


def insert_host(
    transaction: Transaction,
    fleet: str,
    document: Mapping[str, Any],
    kept: Mapping[str, Any],
    number: int,
    uid: str,
    *,
    batch_uid: str = "",
) -> str:
    """
    Give a place of a fleet an instance of the template of now, and return its name.

    `kept` are the outputs of the fleet. Instances of a cloud with one `batch_uid` are created as one batch.
    """
    place = kept.get("hosts", {}).get(str(number % SURGE), {})
    place = place or kept.get("scaling", {}).get("host", {})
    declared = place.get("declared", document.get("local") or {})
    cpu, memory, gpus = offered_capacity(place)
    name: str = place.get("name", f"{fleet}-{number % SURGE}") + (EARLY if number >= SURGE else "")
    endpoint = stack_endpoint(place, batch_uid=batch_uid, fleet=fleet) if place else {}
    transaction.execute(
        "INSERT INTO instances (uid, name, fleet, number, state, address, sharing, blocks, declared,"
        " parts, cpu_millicores, memory_bytes, disk_bytes, gpus, template_digest, env, run_as,"
        " drained, provider, endpoint) VALUES (?, ?, ?, ?, 'provisioning', '127.0.0.1', ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            uid,
            name,
            fleet,
            number,
            document.get("sharing", "exact"),
            document.get("blocks", 1),
            to_json(declared),
            1 if place else len(kept["places"]),
            declared.get("cpu", cpu),
            declared.get("memory", memory),
            declared.get("disk", 0),
            gpus,
            kept["template"],
            env_text(document),
            document.get("run_as", ""),
            kept.get("scaling", {}).get("drained", {}).get(name, place.get("drained", "")),
            place.get("provider", LOCAL),
            to_json(endpoint) if place else "",
        ),
    )
    return name


def offered_capacity(place: Mapping[str, Any]) -> tuple[int, int, str]:
    """Return CPU, memory and GPUs of a new host as its offer says, until it reports what it has."""
    said = place.get("capacity", {})
    return (
        said.get("cpu", 0),
        said.get("memory", 0),
        to_json(said["gpus"]) if said.get("gpus") else "",
    )


STACK_FLEET_MAX = 60
"""Characters of the name of a fleet in that of a stack, which has 100 at most."""


def stack_endpoint(place: Mapping[str, Any], *, batch_uid: str, fleet: str) -> Mapping[str, Any]:
    """
    Return the endpoint of a new host, for one of a cloud with the stack in which it is created.

    The instances that are brought in together are created as one batch, in a stack of the provider that is named here: a
    controller that takes over from a dead one finds them by it.
    """
    endpoint: Mapping[str, Any] = place["endpoint"]
    if place.get("provider") not in CLOUDS or not batch_uid:
        return endpoint
    return {**endpoint, "stack": f"{fleet[:STACK_FLEET_MAX]}-{batch_uid[-12:]}"}


def _settle(transaction: Transaction, fleet: str, one: Exchange) -> None:
    taken = transaction.one(
        "SELECT uid FROM instances WHERE fleet = ? AND number = ? AND state <> 'terminated'",
        (fleet, one.number),
    )
    before = transaction.one("SELECT name FROM instances WHERE uid = ?", (one.uid,))
    if taken is None and before is not None:
        name = f"{fleet}-{one.number}"
        rename_targets(transaction, [(f"host/{before[0]}", f"host/{name}")])
        transaction.execute(
            "UPDATE instances SET number = ?, name = ?, generation = generation + 1,"
            # It was to leave, and the host that was to stay has left.
            " drained = CASE WHEN drained IN (?, ?) THEN '' ELSE drained END"
            " WHERE uid = ?",
            (one.number, name, *RESTING_TEXTS, one.uid),
        )


# Hosts on which no job starts any more, because a person has agreed that they end.
# The plan named the runs there. A run that was placed later would end with its host without having been named. A fleet that is
# removed or released is cordoned as a whole from the moment its plan is entered. If a rollout does not wait for jobs, the
# hosts that it replaces are cordoned: by the plan until its step is done, and afterwards by the template of the fleet.


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Hosts that a rollout replaces: those of another template, and those that are named."""

    fleets: frozenset[str]
    template: str
    hosts: frozenset[str] = frozenset()

    def ends(self, fleet: str, host: str, template: str) -> bool:
        if fleet not in self.fleets:
            return False
        return host in self.hosts or template not in {"", self.template}


@dataclass(frozen=True, slots=True)
class Cordon:
    """What one reading of the ledger says."""

    leaving: frozenset[str]
    exchanges: tuple[_Exchange, ...]

    def reason(self, fleet: str, host: str, template: str) -> str:
        """Say why no job starts on a host, which was created from `template`; empty: jobs may start."""
        if fleet in self.leaving:
            return LEAVING
        return RESTING if any(one.ends(fleet, host, template) for one in self.exchanges) else ""


def read_cordon(connection: Statements | Transaction) -> Cordon:
    return Cordon(leaving_fleets(connection), (*_entered(connection), *_under_way(connection)))


def _entered(connection: Statements | Transaction) -> list[_Exchange]:
    """Return rollouts that an accepted plan will begin, or has begun and not ended."""
    rows = connection.execute(
        "SELECT closes FROM operations INDEXED BY operations_open"
        " WHERE state IN ('planned', 'intended') AND resource_kind = 'fleet' AND closes <> ''"
    )
    said = [json.loads(closes) for (closes,) in rows]
    return [
        _Exchange(frozenset(one["fleets"]), one["template"], frozenset(one["hosts"]))
        for one in said
    ]


def _under_way(connection: Statements | Transaction) -> list[_Exchange]:
    """Return the rollouts of fleets that recreate hosts at once, by their templates."""
    rows = connection.execute(
        "SELECT name, outputs FROM resources WHERE kind = 'fleet' AND outputs <> ''"
        " AND outputs <> '{}'"
    )
    # Of many fleets few are of this kind, and a document is parsed only where its text says so.
    kept = [(name, json.loads(text)) for name, text in rows if _RECREATE in text]
    return [
        _Exchange(frozenset({name}), one["template"])
        for name, one in kept
        if "template" in one and _recreates_at_once(one)
    ]


_RECREATE = '"recreate"'


def _recreates_at_once(document: Mapping[str, Any]) -> bool:
    return bool((document.get("update") or {}).get("strategy") == "recreate")


def closings_of(plan: Plan) -> dict[str, str]:
    """
    Return the hosts that steps of a plan cordon from its entry on, by key of the step; kept with their operations.

    A fleet that is renamed first has its earlier name until then, and so have its hosts.
    """
    earlier = {
        step.resource.name: step.arguments["from"]
        for step in plan.steps
        if step.verb == Verb.RESOURCE_MOVE and step.resource.kind == "fleet"
    }
    return {
        step.key: _cordon_of(step, earlier.get(step.resource.name))
        for step in plan.steps
        if step.verb == Verb.FLEET_UPDATE and _recreates_at_once(step.arguments["document"])
    }


def _cordon_of(step: Step, earlier: str | None) -> str:
    fleet = step.resource.name
    hosts = list(step.arguments.get("exchange", ()))
    if earlier is not None:
        hosts += [earlier + host.removeprefix(fleet) for host in hosts if host.startswith(fleet)]
    return to_json(
        {
            "fleets": [fleet] if earlier is None else [fleet, earlier],
            "hosts": hosts,
            "template": step.arguments.get("template", ""),
        }
    )

"""
Fleets whose hosts follow demand: their limits are read, new hosts get rows, idle ones begin to leave.

The rows are the intent: a controller that takes over from a dead one creates and releases what they say. How many hosts a
fleet wants now is in the outputs of its row, where rollouts look as well.
"""

from __future__ import annotations

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleetform.model import figures
from fleetform.model.figures import counted
from fleetform.model.instance import Instance
from fleetform.model.rollout import SURGE
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json
from fleetform.store.instances import read_reported
from fleetform.store.rollouts import insert_host, standing_still

if TYPE_CHECKING:
    from fleetform.model.ports import Ids
    from fleetform.model.scaling import IdleHosts, ScaleRequest, Scaling
    from fleetform.store.statements import Statements

__all__ = ["add_places", "commit_scaling", "give_up_place", "read_hostless_fleets", "read_scaling"]


def read_scaling(connection: Statements) -> dict[str, Scaling]:
    """Read the limits of fleets whose hosts follow demand, by name; without fleets that are being removed."""
    rows = connection.execute(
        "SELECT name, document, outputs FROM resources WHERE kind = 'fleet'"
        " AND outputs LIKE '%\"scaling\"%' ORDER BY name"
    ).fetchall()
    if not rows or _is_recovering(connection):
        return {}
    # Here: most environments have no such fleet.
    from fleetform.model.scaling import Scaling

    found = {}
    still = standing_still(connection)
    for name, document, outputs in rows:
        kept = json.loads(outputs)
        if name not in still and "scaling" in kept:
            scaling = Scaling.from_step(name, json.loads(document), kept["scaling"], kept["places"])
            found[str(name)] = replace(scaling, host=_as_reported(connection, name, scaling.host))
    return found


def read_hostless_fleets(connection: Statements) -> frozenset[str]:
    """Name the fleets that have no hosts and to which demand brings none: `nodes: 0`."""
    # Stored JSON has no blanks.
    rows = connection.execute(
        "SELECT name FROM resources WHERE kind = 'fleet'"
        " AND outputs LIKE '%\"places\":[]%' AND outputs NOT LIKE '%\"scaling\"%'"
    )
    return frozenset(name for (name,) in rows)


def _as_reported(connection: Statements, fleet: str, host: Instance) -> Instance:
    """
    Return what a new host would be like: as its offer says, or as one of the same type has reported.

    An instance has less memory than its offer says, and which accounts it has is known from the image alone. Without
    the report of an earlier one, a run that fits no host would have one after the other created.
    """
    known = read_reported(connection, fleet)
    if known is None or _type_of(known) != _type_of(host):
        return host
    return replace(
        host,
        cpu_millicores=known.cpu_millicores,
        memory_bytes=known.memory_bytes,
        disk_bytes=known.disk_bytes,
        gpus=tuple(replace(gpu, used_by=None) for gpu in known.gpus),
        boot_id=known.boot_id,
        agent_account=known.agent_account,
        accounts=known.accounts,
    )


def _type_of(instance: Instance) -> object:
    return instance.endpoint.get("instance_type")


# -- more, and fewer ----------------------------------------------------------------------


def commit_scaling(
    transaction: Transaction,
    requests: Sequence[ScaleRequest],
    idle: IdleHosts,
    *,
    ids: Ids,
    now_ms: int,
) -> None:
    """See `model.cloud_ledger.CloudLedger.commit_scaling`."""
    if _is_recovering(transaction):
        # Hosts may exist that this ledger does not know, and jobs on those that it believes to be idle.
        return
    still = standing_still(transaction)
    for request in requests:
        if request.fleet not in still:
            _grow(transaction, request, ids=ids, now_ms=now_ms)
    transaction.many(
        "UPDATE instances SET idle_since_ms = NULL WHERE uid = ?", ((uid,) for uid in idle.ended)
    )
    transaction.many(
        "UPDATE instances SET idle_since_ms = ? WHERE uid = ?"
        f" AND state NOT IN ('terminating', 'terminated') AND {_HAS_NO_JOB}",
        ((now_ms, uid) for uid in idle.began),
    )
    for uid in idle.leaving:
        _shrink(transaction, uid, still, now_ms=now_ms)


def _is_recovering(connection: Statements | Transaction) -> bool:
    # Here: most environments have no such fleet.
    from fleetform.model.ledger import LedgerStatus

    row = connection.execute("SELECT status FROM meta").fetchone()
    return bool(row[0] == LedgerStatus.RECOVERING)


_HAS_NO_JOB = "NOT EXISTS (SELECT 1 FROM allocations a WHERE a.instance_uid = instances.uid)"


def _grow(transaction: Transaction, request: ScaleRequest, *, ids: Ids, now_ms: int) -> None:
    """Give a fleet new hosts, at most a batch of a stack for each hundred."""
    fleet = request.fleet
    row = transaction.one(
        "SELECT document, outputs FROM resources WHERE kind = 'fleet' AND name = ?", (fleet,)
    )
    kept = json.loads(row[1]) if row is not None and row[1] else {}
    if row is None or "scaling" not in kept:
        return
    # Here: commands that only read need nothing of hosts.
    from fleetform.providers.contract.hosts import BATCH_MAX

    limits = kept["scaling"]
    taken = {*kept["places"], *(number % SURGE for number, _ in _alive(transaction, fleet))}
    free = (number for number in itertools.count() if number not in taken)
    numbers = [next(free) for _ in range(min(request.hosts, limits["max"] - len(taken)))]
    uids = [ids.uid() for _ in numbers]
    for position, (number, uid) in enumerate(zip(numbers, uids, strict=True)):
        insert_host(
            transaction, fleet, json.loads(row[0]), kept, number, uid,
            batch_uid=uids[position - position % BATCH_MAX],
        )  # fmt: skip
    if not numbers:
        return
    _write_places(transaction, fleet, {**kept, "places": sorted([*kept["places"], *numbers])})
    what = f"{counted(len(numbers), 'host')} {'is' if len(numbers) == 1 else 'are'} being created"
    why = f" for {counted(request.runs, 'waiting run')}" if request.runs else ""
    transaction.log("fleet.scaled", now_ms, f"{what}{why}", ResourceKey("fleet", fleet))


def _shrink(transaction: Transaction, uid: str, still: frozenset[str], *, now_ms: int) -> None:
    """Let a host leave that has been idle for long enough, unless its fleet needs it or it has got a job."""
    host = transaction.one(
        "SELECT fleet, number, name, idle_since_ms FROM instances WHERE uid = ?"
        f" AND state NOT IN ('terminating', 'terminated') AND drained = '' AND {_HAS_NO_JOB}",
        (uid,),
    )
    if host is None or host[0] in still:
        return
    fleet, number, name, since = host
    if not give_up_place(transaction, fleet, number):
        return
    transaction.execute(
        "UPDATE instances SET state = 'terminating', message = '', idle_since_ms = NULL,"
        " generation = generation + 1 WHERE uid = ?",
        (uid,),
    )
    span = figures.span(now_ms - since) if since is not None else ""
    transaction.log(
        "host.idle",
        now_ms,
        f"host {name} is being released: it had no jobs" + (f" for {span}" if span else ""),
        ResourceKey("fleet", fleet),
    )


def give_up_place(transaction: Transaction, fleet: str, number: int) -> bool:
    """
    Have a fleet no longer want the host with a number, if its hosts follow demand and it has more than its least number.

    Returns:
        Whether the place is free: demand decides whether another host takes it.
    """
    row = transaction.one(
        "SELECT outputs FROM resources WHERE kind = 'fleet' AND name = ?", (fleet,)
    )
    kept = json.loads(row[0]) if row is not None and row[0] else {}
    if "scaling" not in kept or len(_staying(transaction, fleet)) <= kept["scaling"]["min"]:
        return False
    places = [one for one in kept["places"] if one != number]
    _write_places(transaction, fleet, {**kept, "places": places})
    return True


def add_places(transaction: Transaction, fleet: str, numbers: Iterable[int]) -> None:
    """Have a fleet whose hosts follow demand want the hosts with these numbers too, which are there already."""
    row = transaction.one(
        "SELECT outputs FROM resources WHERE kind = 'fleet' AND name = ?", (fleet,)
    )
    kept = json.loads(row[0]) if row is not None and row[0] else {}
    if "scaling" in kept:
        places = {*kept["places"], *(one for one in numbers if 0 <= one < SURGE)}
        _write_places(transaction, fleet, {**kept, "places": sorted(places)})


def _alive(transaction: Transaction, fleet: str) -> Iterator[tuple[int, str]]:
    yield from transaction.execute(
        "SELECT number, state FROM instances WHERE fleet = ? AND state <> 'terminated'", (fleet,)
    )


def _staying(transaction: Transaction, fleet: str) -> list[int]:
    alive = _alive(transaction, fleet)
    return [number for number, state in alive if state != "terminating" and number < SURGE]


def _write_places(transaction: Transaction, fleet: str, outputs: Mapping[str, Any]) -> None:
    transaction.execute(
        "UPDATE resources SET outputs = ? WHERE kind = 'fleet' AND name = ?",
        (to_json(outputs), fleet),
    )

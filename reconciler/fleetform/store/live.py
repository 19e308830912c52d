"""
What a plan compares with, read from the ledger.

A plan with nothing to do reads ten thousand rows of resources and one of an instance: no run's
document is parsed for it, and neither `rows` nor the values of runs are imported.
"""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetform.agents.protocol.keys import Cursor
from fleetform.model.instance import Gpu, Instance, InstanceState
from fleetform.model.live import LedgerStatus, Live, LiveResource, LiveRun
from fleetform.model.run_state import RunState
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.store.overrides import read_overrides

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["RUN_STATES", "read_instances", "read_live"]

# Looking a value up in a dictionary takes a fifth of the enumeration's own call.
RUN_STATES: Mapping[str, RunState] = {state.value: state for state in RunState}
_INSTANCE_STATES = {state.value: state for state in InstanceState}

# In the order in which `_instance_of` unpacks them.
_INSTANCE = (
    "uid", "name", "fleet", "number", "state", "generation", "sharing", "blocks",
    "cpu_millicores", "memory_bytes", "disk_bytes", "gpus", "address", "boot_id", "install_id",
    "log_id", "log_number", "declared", "parts", "message", "drained",
)  # fmt: skip
_INSTANCES = (
    f"SELECT {', '.join(_INSTANCE)} FROM instances WHERE state <> 'terminated'"
    " ORDER BY fleet, number"
)

_RESOURCES = (
    "SELECT s.kind, s.name, s.uid, s.generation, s.digest, s.execution_digest, s.own_digest,"
    " s.document, s.type, s.state, s.archived, s.protected, s.parent, s.element, s.operation,"
    " r.state, r.attempt, r.cause, r.message, r.started_at_ms, r.finished_at_ms, r.stale,"
    " s.rerun_mark"
    " FROM resources s LEFT JOIN runs r ON r.uid = s.uid AND s.kind = 'run'"
    " ORDER BY s.kind, s.name"
)


def read_live(connection: Statements) -> Live:
    environment_uid, ledger_id, epoch, status, note, serial, rules, fence = connection.execute(
        "SELECT environment_uid, ledger_id, epoch, status, note, serial, rules, fence FROM meta"
    ).fetchone()
    gpus = dict(
        connection.execute(
            "SELECT run_uid, CAST(sum(gpus_count) AS BIGINT) FROM allocations WHERE gpus_count > 0 GROUP BY run_uid"
        )
    )
    instances = read_instances(connection)
    return Live(
        environment_uid=environment_uid,
        ledger_id=ledger_id,
        epoch=epoch,
        status=LedgerStatus(status),
        serial=serial,
        resources=_resources(connection, gpus),
        instances=instances,
        rules=Rules.of(json.loads(rules)) if rules else None,
        fence=fence,
        notes=_notes(note, instances),
        overrides=read_overrides(connection),
    )


def _resources(connection: Statements, gpus: Mapping[str, int]) -> dict[ResourceKey, LiveResource]:
    resources = {}
    for row in connection.execute(_RESOURCES):
        (kind, name, uid, generation, digest, execution, own, document, type_, state, archived,
         protected, parent, element, operation, run_state, attempt, cause, message, started,
         finished, stale, rerun_mark) = row  # fmt: skip
        run = None
        if run_state is not None:
            run = LiveRun(
                RUN_STATES[run_state], attempt, cause, message, started, finished,
                gpus.get(uid, 0), bool(stale), rerun_mark,
            )  # fmt: skip
        key = ResourceKey(kind, name)
        # By position: ten thousand of them are read for a plan in which nothing has changed.
        resources[key] = LiveResource(
            key, uid, generation, digest, execution, own, document, type_, state,
            bool(archived), bool(protected), parent, element, operation, run,
        )  # fmt: skip
    return resources


def read_instances(connection: Statements) -> tuple[Instance, ...]:
    return tuple(_instance_of(row) for row in connection.execute(_INSTANCES))


def _notes(note: str, instances: Iterable[Instance]) -> tuple[str, ...]:
    silent = (
        f"host {one.name} is silent: {one.message}" if one.message else f"host {one.name} is silent"
        for one in instances
        if one.state.value == "unreachable"
    )
    return (note, *silent) if note else tuple(silent)


def _instance_of(row: Sequence[Any]) -> Instance:
    (uid, name, fleet, number, state, generation, sharing, blocks, cpu, memory, disk, gpus,
     address, boot_id, install_id, log_id, log_number, declared, parts, message,
     drained) = row  # fmt: skip
    return Instance(
        uid=uid,
        name=name,
        fleet=fleet,
        number=number,
        state=_INSTANCE_STATES[state],
        generation=generation,
        sharing=sharing,
        blocks=blocks,
        cpu_millicores=cpu,
        memory_bytes=memory,
        disk_bytes=disk,
        gpus=tuple(Gpu(**gpu) for gpu in json.loads(gpus)) if gpus else (),
        address=address,
        boot_id=boot_id,
        install_id=install_id,
        cursor=Cursor(log_id, log_number) if log_id else None,
        declared=json.loads(declared) if declared else {},
        parts=parts,
        message=message,
        drained=drained,
    )

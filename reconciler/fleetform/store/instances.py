"""Instances of hosts, read from their rows."""

from __future__ import annotations

import json

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetform.agents.protocol.keys import Cursor
from fleetform.model.instance import Gpu, GpuUse, Instance, InstanceState
from fleetform.store.rollouts import Cordon, read_cordon

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["read_instances", "read_reported"]

_INSTANCE_STATES = {state.value: state for state in InstanceState}

# In the order in which `_instance_of` unpacks them.
_INSTANCE = (
    "uid", "name", "fleet", "number", "state", "generation", "sharing", "blocks",
    "cpu_millicores", "memory_bytes", "disk_bytes", "gpus", "address", "boot_id", "install_id",
    "log_id", "log_number", "declared", "parts", "message", "drained",
    "seen_at_ms", "template_digest", "provider", "endpoint", "host_key", "run_as", "agent_account",
    "accounts", "idle_since_ms", "ended_at_ms",
)  # fmt: skip
_INSTANCES = f"SELECT {', '.join(_INSTANCE)} FROM instances WHERE state <> 'terminated'"
_REPORTED = (
    f"SELECT {', '.join(_INSTANCE)} FROM instances WHERE fleet = ? AND boot_id <> ''"
    " ORDER BY coalesce(seen_at_ms, 0) DESC, uid LIMIT 1"
)
_THESE = " AND uid IN (SELECT value FROM json_each(?1))"


def read_instances(
    connection: Statements, uids: Sequence[str] | None = None
) -> tuple[Instance, ...]:
    """Read those that are not terminated, of `uids` or all; a cordoned one says why in `drained`."""
    if uids is not None and not uids:
        return ()
    which, values = ("", ()) if uids is None else (_THESE, (json.dumps(list(uids)),))
    cordon = read_cordon(connection)
    rows = connection.execute(f"{_INSTANCES}{which} ORDER BY fleet, number", values)
    return tuple(_instance_of(row, cordon) for row in rows)


def read_reported(connection: Statements, fleet: str) -> Instance | None:
    """Read the host of a fleet that was heard last, gone or not; None: none ever answered."""
    row = connection.execute(_REPORTED, (fleet,)).fetchone()
    return None if row is None else _instance_of(row, read_cordon(connection))


def _instance_of(row: Sequence[Any], cordon: Cordon) -> Instance:
    (uid, name, fleet, number, state, generation, sharing, blocks, cpu, memory, disk, gpus,
     address, boot_id, install_id, log_id, log_number, declared, parts, message,
     drained, seen_at_ms, template_digest, provider, endpoint, host_key, run_as, agent_account,
     accounts, idle_since_ms, ended_at_ms) = row  # fmt: skip
    said: Mapping[str, Any] = json.loads(declared) if declared else {}
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
        gpus=_gpus_of(json.loads(gpus), said) if gpus else (),
        address=address,
        boot_id=boot_id,
        install_id=install_id,
        cursor=Cursor(log_id, log_number) if log_id else None,
        declared=said,
        parts=parts,
        message=message,
        drained=drained or cordon.reason(fleet, name, template_digest),
        template_digest=template_digest,
        seen_at_ms=seen_at_ms,
        provider=provider,
        endpoint=json.loads(endpoint) if endpoint else {},
        host_key=host_key,
        run_as=run_as,
        agent_account=agent_account,
        accounts=frozenset(json.loads(accounts)) if accounts else None,
        idle_since_ms=idle_since_ms,
        ended_at_ms=ended_at_ms,
    )


def _gpus_of(stored: Sequence[dict[str, Any]], declared: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """Leave out devices that are no longer declared, also before the host answers again."""
    gpus = tuple(_gpu_of(gpu) for gpu in stored)
    if "devices" not in declared:
        return gpus
    # Here: most commands parse no amounts.
    from fleetform.spec.quantities.devices import select_devices

    return select_devices(gpus, declared["devices"])


def _gpu_of(stored: dict[str, Any]) -> Gpu:
    use = stored.pop("used_by", None)
    return Gpu(**stored, used_by=None if use is None else GpuUse(**use))

"""
What the creation of a batch would change, said by the engine before a host has a uid; and what a release deletes.

The program is that of the batch, with names in place of uids, and of the shared parts if they do not exist. It is previewed in a
stack that is thrown away, so a preview writes nothing into the state of the environment. What was previewed once is kept by the
digest of its program and of the engine, and previews of several batches run side by side. The account is asked each time: what it
has, and whose the credentials are, is in no program.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from fleetform.providers.contract.hosts import BATCH_MAX, PreviewedChange, PreviewedProperty
from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.private_files import replace_private
from fleetform.providers.pulumi.aws.batch_record import BatchRecord, read_records, read_shared
from fleetform.providers.pulumi.aws.preflight import require_ready
from fleetform.providers.pulumi.aws.program import (
    SharedParts,
    SharedRequest,
    batch_program,
    shared_program,
    whole_program,
)
from fleetform.providers.pulumi.engine.changes import Action
from fleetform.providers.pulumi.engine.installation import plugins, pulumi_program
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.runner_slots import RunnerSlots
from fleetform.providers.pulumi.engine.stack import open_stack
from fleetform.providers.pulumi.engine.stack_settings import StackSettings, passphrase_file
from fleetform.spec.canonical import digest

__all__ = ["preview_batch", "preview_program", "previewed_access", "previewed_release"]


async def preview_batch(
    folder: Path,
    records: StackRecords,
    record: BatchRecord,
    shared: SharedRequest,
    slots: RunnerSlots,
    replaced: int = 0,
    *,
    emptied: bool = False,
) -> tuple[PreviewedChange, ...]:
    """
    Return the changes that the creation of hosts would make, in a batch for each hundred.

    Args:
        folder: Of all that Pulumi has of the environment.
        records: Of its stacks.
        record: The hosts, with their names as uids; they may be more than one batch has.
        shared: What its hosts share.
        slots: For runners.
        replaced: So many of the hosts take the places of others.
        emptied: All hosts are released before, and what they share with them.

    Raises:
        ProviderError: The account lacks something that the hosts need, or the engine fails.
    """
    known = read_shared(records, record.shared)
    parts = known.parts if known is not None and not emptied else None
    names = list(record.hosts)
    batches = [
        replace(record, hosts={name: name for name in names[first : first + BATCH_MAX]}).batch({})
        for first in range(0, len(names), BATCH_MAX)
    ]
    programs = [
        whole_program(record.account, batch, shared)
        if parts is None
        else batch_program(record.account, batch, parts)
        for batch in batches
    ]
    # The account must have room for all of them together.
    await asyncio.to_thread(require_ready, record, shared, replaced)
    first, *others = await asyncio.gather(
        *(preview_program(folder, one, slots) for one in programs)
    )
    made = {one.name for one in shared_program(record.account, shared).resources}
    # Each of the others would create what the first one has created by then.
    return (*first, *(one for changes in others for one in changes if one.name not in made))


def previewed_release(
    records: StackRecords, uids: frozenset[str], kept: frozenset[str]
) -> Iterator[PreviewedChange]:
    """
    Yield what the release of hosts deletes, and with the last host of a stack of shared parts that stack.

    Programs of the records are compared, as for a change of access. `kept` are stacks of shared parts that other hosts need.
    """
    used, shared_by_these = set(kept), set()
    for record in read_records(records):
        gone = frozenset(uid for uid in uids if uid in record.hosts and uid in record.created)
        if record.hosts.keys() - uids:
            used.add(record.shared)
        if not gone:
            continue
        shared_by_these.add(record.shared)
        before, after = (
            {one.name: one.type for one in _named(batch).resources if one.provider}
            for batch in (record, record.without(uids))
        )
        yield from (_deleted(before[name], name) for name in before if name not in after)
    for name in sorted(shared_by_these - used):
        shared = read_shared(records, name)
        if shared is not None and shared.parts is not None:
            program = shared_program(shared.account, shared.request)
            yield from (_deleted(one.type, one.name) for one in program.resources if one.provider)


def _named(record: BatchRecord) -> Program:
    """Return the program of a batch with the names of its hosts as uids; without hosts it has no resource."""
    if not record.hosts:
        return Program((), {})
    names = {name: name for name in record.hosts.values()}
    return batch_program(
        record.account, replace(record, hosts=names).batch({}), SharedParts("", "")
    )


def _deleted(kind: str, name: str) -> PreviewedChange:
    return PreviewedChange(Action.DELETE, kind, name)


def previewed_access(
    records: StackRecords, name: str, ssh_from: tuple[str, ...]
) -> Iterator[PreviewedChange]:
    """
    Yield the change of the security group in a stack of shared parts for which SSH is to be accepted from other addresses.

    Both programs are compared, not the state: the stack may be in use, and a plan must not lock it.
    """
    shared = read_shared(records, name)
    assert shared is not None, f"{name} has a record"
    before, after = (
        shared_program(shared.account, replace(shared.request, ssh_from=ranges)).resources
        for ranges in (shared.request.ssh_from, ssh_from)
    )
    for old, new in zip(before, after, strict=True):
        rules = zip(
            old.properties.get("ingress", ()), new.properties.get("ingress", ()), strict=True
        )
        differences = tuple(
            PreviewedProperty(f"ingress[{number}].{name}", rule[name], now[name])
            for number, (rule, now) in enumerate(rules)
            for name in rule
            if rule[name] != now[name]
        )
        if differences:
            yield PreviewedChange(Action.UPDATE, new.type, new.name, differences)


async def preview_program(
    folder: Path, program: Program, slots: RunnerSlots
) -> tuple[PreviewedChange, ...]:
    """Return the changes that a program of a new stack would make; it is kept by its content."""
    kept = folder / "previews" / f"{digest([program.digest, *_engine()])[:32]}.json"
    if kept.exists():
        rows = json.loads(kept.read_bytes())
        return tuple(PreviewedChange(one["action"], one["type"], one["name"]) for one in rows)
    async with slots.take():
        changes = await _preview(program)
    replace_private(kept, json.dumps([asdict(one) for one in changes]).encode())
    return changes


def _engine() -> list[str]:
    """
    Name the CLI and the plugins of AWS that are installed; no program is started for that.

    Another version of the plugin may have another preview of the same program.
    """
    named = plugins("aws")
    paths = [one for one in (pulumi_program(), *named) if one and Path(one).is_absolute()]
    return [*named, *(f"{one}:{Path(one).stat().st_mtime_ns}" for one in paths)]


async def _preview(program: Program) -> tuple[PreviewedChange, ...]:
    with tempfile.TemporaryDirectory(prefix="fleetform-preview-") as name:
        folder = Path(name)
        settings = StackSettings(
            name="preview",
            folder=folder / "stack",
            backend=f"file://{folder / 'state'}",
            passphrase=passphrase_file(folder, "preview"),
        )
        async with open_stack(settings, environment=os.environ) as stack:
            planned = list(await stack.preview(program))
    # Events come in any order.
    order = {one.name: number for number, one in enumerate(program.resources)}
    planned = sorted(planned, key=lambda one: order[one.name])
    return tuple(PreviewedChange(one.action, one.type, one.name) for one in planned)

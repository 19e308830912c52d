"""
Stacks of the hosts of fleets: hosts are created in batches, released one by one, and nothing is left behind.

Each call is a whole change: it opens the stack, settles what an earlier change that was cut off has left, previews,
compares the preview with what was asked for, and applies it. The engine is bound to the preview, and the
preview to the hosts of the call: no other resource is created, changed or deleted. A new stack has no other resource, so
there the preview is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeGuard

from fleetform.providers.contract.errors import (
    HostGone,
    OfferRefused,
    PermanentError,
    ProviderError,
    StackLocked,
)
from fleetform.providers.contract.hosts import CreatedHost, Report
from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.pulumi.aws.batch_record import (
    SHARED,
    BatchRecord,
    SharedRecord,
    read_all_shared,
    read_record,
    read_records,
    read_shared,
    write_record,
    write_shared,
)
from fleetform.providers.pulumi.aws.expected_changes import require_only, teller, without_unused
from fleetform.providers.pulumi.aws.preflight import require_ready
from fleetform.providers.pulumi.aws.program import (
    INTERFACES,
    SECURITY_GROUP,
    AwsAccount,
    SharedParts,
    SharedRequest,
    address_name,
    batch_program,
    host_uid,
    shared_program,
)
from fleetform.providers.pulumi.aws.settled_hosts import (
    INSTANCE,
    HostInventory,
    hosts_of,
    settle_shared,
    settled_hosts,
    ssh_ranges,
)
from fleetform.providers.pulumi.engine.changes import Action
from fleetform.providers.pulumi.engine.deployment import resources_of
from fleetform.providers.pulumi.engine.failures import Failure, FailureKind, error_of, failure
from fleetform.providers.pulumi.engine.runner_slots import RunnerSlots
from fleetform.providers.pulumi.engine.stack import Stack
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG
from fleetform.providers.pulumi.recovery.recover import require_listed

__all__ = ["SHARED_SUFFIX", "Batches", "OpenStack", "open_when_free"]

SHARED_SUFFIX = "-shared"
"""Ends the names of stacks with shared parts."""

_BUSY_SECONDS = 60.0
"""For how long a stack is waited for: a runner that has lost its controller ends within 30 s."""

_BUSY_LOOK_SECONDS = 2.0

_FINISH_SECONDS = 10.0
"""For how long a change may go on whose controller ends, before it is interrupted: a create takes some seconds."""

_ANSWERS = frozenset(
    {
        FailureKind.CREDENTIALS,
        FailureKind.CREDENTIALS_EXPIRED,
        FailureKind.FORBIDDEN,
        FailureKind.GONE,
        FailureKind.INVALID,
        FailureKind.NO_CAPACITY,
        FailureKind.OTHER_ACCOUNT,
        FailureKind.QUOTA,
        FailureKind.THROTTLED,
    }
)
"""Failures by which the cloud says that it created nothing; after another one it may have."""

OpenStack = Callable[[str], contextlib.AbstractAsyncContextManager[Stack]]
"""Opens a stack by its name."""

InventoryOf = Callable[[AwsAccount], Awaitable[HostInventory]]
"""Returns the inventory of an account and region."""


class Batches:
    """
    All stacks of hosts of one environment, in one event loop.

    `stacks` is the folder with the folders of the stacks, `records` has what each contains.
    """

    def __init__(
        self, stacks: Path, records: StackRecords, open_stack: OpenStack, slots: RunnerSlots
    ) -> None:
        self._stacks = stacks
        self._records = records
        self._open_stack = open_stack
        self._slots = slots
        self._locks: dict[str, asyncio.Lock] = {}

    async def create(
        self,
        wanted: BatchRecord,
        shared: SharedRequest,
        inventory: HostInventory,
        *,
        user_data: Mapping[str, str],
        report: Report,
    ) -> Mapping[str, CreatedHost | ProviderError]:
        """
        Create the hosts of `wanted` that do not exist, and return each, or why it does not exist, by uid.

        Args:
            wanted: The stack with the hosts of this call; it may have others already.
            shared: The parts that its hosts share, created when they are first needed.
            inventory: Of the account and region.
            user_data: For the first boot, by uid.
            report: Told what is happening.

        Raises:
            ProviderError: Nothing was created.
        """
        async with self._lock(wanted.stack):
            known = read_record(self._records, wanted.stack)
            if known is None:
                await asyncio.to_thread(require_ready, wanted, shared)
            else:
                known = await self._answered(known, frozenset(known.hosts), inventory)
            record = (known or wanted).with_hosts(wanted.hosts)
            # Before the shared parts exist: parts that a record names are not removed.
            write_record(self._records, record)
            uids = frozenset(wanted.hosts)
            try:
                parts = await self._shared(record, shared, inventory, report)
            except OfferRefused:
                write_record(self._records, record.without(uids))
                raise
            async with self._slots.take(), self._opened(record.stack) as stack:
                found = await self._create(
                    stack, record, parts, inventory, user_data, uids, report, is_new=known is None
                )
            found = _whole(found) if shared.is_cluster else found
            # A stack that has no hosts left is removed with the next release: the next offer does not wait for it.
            record = read_record(self._records, record.stack) or record
            refused = [
                uid for uid, one in found.items() if isinstance(one, (OfferRefused, PermanentError))
            ]
            write_record(self._records, record.without_refused(refused))
            return found

    async def adopt(
        self,
        wanted: BatchRecord,
        shared: SharedRequest,
        inventory: HostInventory,
        report: Report,
    ) -> None:
        """
        Record the hosts of `wanted`, which exist, and add them to the state of their stack.

        Raises:
            ProviderError: The state lacks some of them; asking again continues.
        """
        async with self._lock(wanted.stack):
            # Before the state: a host that a record names as created is never created again.
            write_record(self._records, wanted)
            parts = await self._shared(wanted, shared, inventory, report)
            async with self._slots.take(), self._opened(wanted.stack) as stack:
                program = batch_program(wanted.account, wanted.batch({}), parts)
                there = await settled_hosts(stack, program, inventory, wanted, report)
            for uid in wanted.hosts:
                if uid not in there:
                    raise _gone(wanted, uid, wanted.created[uid])

    def has_released(self, stack_name: str) -> bool:
        """Tell whether nothing is left of a stack, no stack is without hosts and no shared part without a batch."""
        is_gone = read_record(self._records, stack_name) is None
        return is_gone and not self._unused()

    async def release(
        self, stack_name: str, uids: frozenset[str], inventory: HostInventory, report: Report
    ) -> None:
        """
        Delete these hosts of a stack, and the stack with its last one; nothing where it has none of them.

        If there is no record of the stack, as in a ledger that was moved without it, EC2 ends the instances.

        Raises:
            ProviderError: Some of them may still exist.
        """
        async with self._lock(stack_name):
            record = read_record(self._records, stack_name)
            if record is None:
                await _terminate(uids, inventory, report)
            else:
                record = await self._answered(record, uids, inventory)
                shared = read_shared(self._records, record.shared)
                parts = shared.parts if shared is not None else None
                async with self._slots.take(is_release=True), self._opened(stack_name) as stack:
                    await self._release(stack, record, parts, inventory, uids, report)
                if not record.without(uids).hosts:
                    self._forget(stack_name)
        await self._remove_unused(inventory, report)

    async def terminate(
        self, uid: str, cloud_id: str, inventory: HostInventory, report: Report
    ) -> None:
        """
        Terminate an instance; the stack that created it releases it, and EC2 alone does where none has it.

        Raises:
            ProviderError: It may still exist.
        """
        for record in read_records(self._records):
            if record.created.get(uid) == cloud_id and uid in record.hosts:
                await self.release(record.stack, frozenset({uid}), inventory, report)
                return
        report(f"terminating {cloud_id}")
        await inventory.terminate([cloud_id])

    # -- one stack --------------------------------------------------------------------------------

    async def _create(
        self,
        stack: Stack,
        record: BatchRecord,
        parts: SharedParts,
        inventory: HostInventory,
        user_data: Mapping[str, str],
        uids: frozenset[str],
        report: Report,
        *,
        is_new: bool,
    ) -> Mapping[str, CreatedHost | ProviderError]:
        there: Mapping[str, CreatedHost] = {}
        if not is_new:
            record, there = await _settled(
                stack, record, parts, inventory, frozenset(record.asked), report
            )
        gone = {uid: record.created[uid] for uid in record.created if uid not in there}
        lost = {uid: _gone(record, uid, gone[uid]) for uid in uids if uid in gone}
        # A uid is bought once: what was created under it and is gone is not declared again.
        declared = record.without(frozenset(gone))
        # An instance that lacks its Elastic IP exists, and is not complete.
        missing = frozenset(
            uid for uid in declared.hosts if uid not in there or not there[uid].address
        )
        failures: dict[str, ProviderError] = {}
        if missing:
            program = batch_program(record.account, declared.batch(user_data), parts)
            if not is_new:
                names = missing | {address_name(uid) for uid in missing} | {INTERFACES}
                planned = without_unused(await stack.preview(program), there)
                require_only(record.stack, planned, Action.CREATE, names)
            # Before the call: if its answer is lost, the inventory is asked before the next one.
            record = record.with_asked(missing - there.keys())
            write_record(self._records, record)
            try:
                outcome = await stack.up(
                    program, on_change=teller(record, report), continue_on_error=True
                )
            except StackLocked:
                # Nothing was asked for: the next call need not wait for it.
                write_record(self._records, record.with_asked(()))
                raise
            except asyncio.CancelledError:
                # The controller ends. The next one need not wait for what the cloud answers now.
                answers = await stack.finish(_FINISH_SECONDS)
                if answers is not None:
                    write_record(self._records, (await _created(stack, record, there, answers))[0])
                raise
            failures = {
                host_uid(one.where): error_of(replace(one, where=_subject(record, one.where)))
                for one in outcome.failures
            }
            record, there = await _created(stack, record, there, outcome.failures)
        write_record(self._records, record)
        found: dict[str, CreatedHost | ProviderError] = {**lost}
        for uid in sorted(uids - lost.keys()):
            if uid in there and there[uid].address:
                found[uid] = there[uid]
                continue
            problem = failures.get(uid) or _not_created(record, uid)
            if uid in there and isinstance(problem, OfferRefused):
                # It has no address, and is released before the next offer.
                problem.exists = True
            found[uid] = problem
        return found

    async def _release(
        self,
        stack: Stack,
        record: BatchRecord,
        parts: SharedParts | None,
        inventory: HostInventory,
        uids: frozenset[str],
        report: Report,
    ) -> None:
        # Without shared parts no host of the stack was ever asked for.
        there: Mapping[str, CreatedHost] = {}
        if parts is not None:
            record, there = await _settled(stack, record, parts, inventory, uids, report)
        left = record.without(uids)
        if not left.hosts:
            (await stack.destroy(on_change=teller(record, report))).require()
            await stack.remove()
            return
        # The address of a host that was terminated by hand is there still.
        has_more = record.template.elastic_address
        if parts is not None and (has_more or not uids.isdisjoint(there)):
            kept = left.without(frozenset(uid for uid in left.hosts if uid not in there))
            program = batch_program(record.account, kept.batch({}), parts)
            deleted = uids.intersection(there)
            deleted |= {address_name(uid) for uid in deleted}
            planned = without_unused(await stack.preview(program), there)
            require_only(record.stack, planned, Action.DELETE, deleted)
            (await stack.up(program, on_change=teller(record, report))).require()
        write_record(self._records, left)

    # -- shared parts -----------------------------------------------------------------------------

    def outdated_access(
        self, fleet: str, stacks: frozenset[str], ssh_from: tuple[str, ...]
    ) -> tuple[str, ...]:
        """
        Name the stacks with shared parts of a fleet that accept SSH from other addresses than these.

        `stacks` are those of its hosts: a fleet that was renamed has parts with its earlier name.
        """
        used = {one.shared for one in read_records(self._records) if one.stack in stacks}
        return tuple(
            name
            for name, one in read_all_shared(self._records).items()
            if (name in used or one.request.fleet == fleet) and not one.is_open_to(ssh_from)
        )

    async def update_access(
        self, name: str, ssh_from: tuple[str, ...], inventory_of: InventoryOf, report: Report
    ) -> None:
        """
        Have the security group in a stack accept SSH from these addresses alone.

        The new ones are accepted before the others no longer are: the plugin takes rules away first, and may fail in between.

        Raises:
            ProviderError: Some addresses may be missing, or too many; asking again continues.
        """
        async with self._lock(name):
            shared = read_shared(self._records, name)
            if shared is None or shared.is_open_to(ssh_from):
                return
            request = replace(shared.request, ssh_from=ssh_from)
            # Parts that were not created completely are created by this.
            shared = replace(shared, request=request, is_changing=shared.parts is not None)
            write_shared(self._records, name, shared)
            if shared.parts is None:
                return
            inventory = await inventory_of(shared.account)
            async with self._slots.take(), self._opened(name) as stack:
                await self._change_access(stack, shared, inventory, report)
            write_shared(self._records, name, replace(shared, is_changing=False))

    async def _change_access(
        self, stack: Stack, shared: SharedRecord, inventory: HostInventory, report: Report
    ) -> None:
        request = shared.request
        program = shared_program(shared.account, request)
        await settle_shared(stack, program, inventory, request.uid, report)
        # A rule that was added by hand cannot be added again, and one that was deleted not be deleted.
        await stack.refresh(program)
        now = ssh_ranges(await stack.export_state())
        for ranges in (
            (*now, *(one for one in request.ssh_from if one not in now)),
            request.ssh_from,
        ):
            program = shared_program(shared.account, replace(request, ssh_from=ranges))
            planned = await stack.preview(program)
            require_only(stack.name, planned, Action.UPDATE, frozenset({SECURITY_GROUP}))
            if planned:
                report(f"fleet {request.fleet} accepts SSH from {', '.join(ranges)}")
                (await stack.up(program)).require()

    async def _shared(
        self, record: BatchRecord, request: SharedRequest, inventory: HostInventory, report: Report
    ) -> SharedParts:
        async with self._lock(record.shared):
            shared = read_shared(self._records, record.shared)
            if shared is not None and shared.parts is not None:
                return shared.parts
            # Before the call: a state that is lost is rebuilt from it.
            shared = SharedRecord(record.account, request)
            write_shared(self._records, record.shared, shared)
            program = shared_program(record.account, request)
            async with self._slots.take(), self._opened(record.shared) as stack:
                await settle_shared(stack, program, inventory, request.uid, report)
                names = frozenset(one.name for one in program.resources)
                is_new = not await stack.export_state()
                planned = () if is_new else await stack.preview(program)
                require_only(record.shared, planned, Action.CREATE, names, Action.UPDATE)
                if is_new or planned:
                    report(f"creating what the hosts of fleet {record.fleet} share")
                    (await stack.up(program)).require()
                ids = {one.name: one.id for one in resources_of(await stack.export_state())}
            parts = SharedParts(ids[SECURITY_GROUP], ids["key"], ids.get("placement-group", ""))
            write_shared(self._records, record.shared, replace(shared, parts=parts))
            return parts

    async def _remove_unused(self, inventory: HostInventory, report: Report) -> None:
        """Remove the stacks that have no hosts, and then the shared parts that no batch with hosts names."""
        while names := self._unused():
            for name in names:
                async with self._lock(name):
                    if name in self._unused():
                        await self._remove(name, inventory, report)

    async def _remove(self, name: str, inventory: HostInventory, report: Report) -> None:
        shared = read_shared(self._records, name)
        async with self._slots.take(is_release=True), self._opened(name) as stack:
            if shared is not None:
                report(f"deleting what is shared in {name}")
                program = shared_program(shared.account, shared.request)
                await settle_shared(stack, program, inventory, shared.request.uid, report)
                # If this is cut off, the next batch must not be given what is half deleted.
                write_shared(self._records, name, replace(shared, parts=None))
            (await stack.destroy()).require()
            await stack.remove()
        self._forget(name)

    def _unused(self) -> tuple[str, ...]:
        records = tuple(read_records(self._records))
        empty = {one.stack for one in records if not one.hosts}
        used = {one.shared for one in records if one.hosts}
        there = set(self._records.read_all(SHARED))
        return tuple(sorted(empty)) or tuple(sorted(there - used))

    # -- stacks -----------------------------------------------------------------------------------

    async def _answered(
        self, record: BatchRecord, uids: frozenset[str], inventory: HostInventory
    ) -> BatchRecord:
        """
        Return the record once it can be known which of these hosts exist that were asked for without an answer.

        Raises:
            AnswerUnknown: The cloud may list them later.
        """
        if not uids.isdisjoint(record.asked) and record.missing_since_ms is None:
            # Open, so no runner lives that could have them created. It may have recorded the answers at its end.
            async with self._slots.take(), self._opened(record.stack):
                record = read_record(self._records, record.stack) or record
                record = replace(record, missing_since_ms=_now_ms())
                write_record(self._records, record)
        asked = {uid: record.hosts.get(uid, uid) for uid in uids.intersection(record.asked)}
        if asked and record.missing_since_ms is not None:
            since, now = map(_moment, (record.missing_since_ms, _now_ms()))
            await require_listed(inventory, asked, since=since, now=now)
        return record

    def _opened(self, name: str) -> contextlib.AbstractAsyncContextManager[Stack]:
        return open_when_free(self._open_stack, name)

    def _forget(self, name: str) -> None:
        self._records.remove(name)
        shutil.rmtree(self._stacks / name, ignore_errors=True)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())


@contextlib.asynccontextmanager
async def open_when_free(open_stack: OpenStack, name: str) -> AsyncIterator[Stack]:
    """Open a stack; wait for the runner of a controller that was killed."""
    async with contextlib.AsyncExitStack() as held:
        deadline = asyncio.get_running_loop().time() + _BUSY_SECONDS
        while True:
            try:
                stack = await held.enter_async_context(open_stack(name))
                break
            except StackLocked:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(_BUSY_LOOK_SECONDS)
        yield stack


async def _terminate(uids: frozenset[str], inventory: HostInventory, report: Report) -> None:
    for one in await inventory.existing():
        if one.type == INSTANCE and one.tags.get(IDENTITY_TAG) in uids:
            report(f"terminating {one.id}, which no stack has")
            await inventory.terminate([one.id])


def _whole(
    found: Mapping[str, CreatedHost | ProviderError],
) -> Mapping[str, CreatedHost | ProviderError]:
    """Refuse all hosts of a cluster if one was refused: the others must be released, and keep their places in the record until then."""
    refusal = next((one for one in found.values() if _is_refused(one)), None)
    if refusal is None:
        return found
    existing = copy.copy(refusal)
    existing.exists = True
    return {uid: one if _is_refused(one) else existing for uid, one in found.items()}


def _is_refused(found: CreatedHost | ProviderError) -> TypeGuard[OfferRefused]:
    return isinstance(found, OfferRefused)


async def _settled(
    stack: Stack,
    record: BatchRecord,
    parts: SharedParts,
    inventory: HostInventory,
    answered: frozenset[str],
    report: Report,
) -> tuple[BatchRecord, Mapping[str, CreatedHost]]:
    """Return the record and the hosts that exist; those of `answered` that are not listed were not created."""
    program = batch_program(record.account, record.batch({}), parts)
    there = await settled_hosts(stack, program, inventory, record, report)
    ended = await inventory.ended() if record.asked else ()
    ids = {one.tags[IDENTITY_TAG]: one.id for one in ended}
    ids |= {uid: one.id for uid, one in there.items()}
    return record.settled(ids, answered), there


async def _created(
    stack: Stack, record: BatchRecord, there: Mapping[str, CreatedHost], failures: Sequence[Failure]
) -> tuple[BatchRecord, Mapping[str, CreatedHost]]:
    """Return the record and the hosts that exist after a change with these failures."""
    asked = frozenset(record.asked)
    unsure = {host_uid(one.where) for one in failures if one.kind not in _ANSWERS}
    if there or not _created_nothing(failures, asked):
        created = {one.id: one.created_at_ms for one in there.values()}
        there = hosts_of(await stack.export_state(), record.template, created)
    record = record.with_created({uid: one.id for uid, one in there.items()})
    return record.with_asked((asked & unsure) - there.keys()), there


def _created_nothing(failures: Sequence[Failure], missing: frozenset[str]) -> bool:
    """Tell whether the cloud has refused each host, so that the state of the stack is as before."""
    refused = {one.where for one in failures if isinstance(error_of(one), OfferRefused)}
    return missing <= refused


def _gone(record: BatchRecord, uid: str, cloud_id: str) -> ProviderError:
    return HostGone(
        f"instance {record.hosts[uid]}: {cloud_id} no longer exists",
        advice=f"replace it with `fleetform apply --replace {record.fleet}`",
    )


def _subject(record: BatchRecord, where: str) -> str:
    """Write `instance gpus-0`, as every provider does: views that name the host leave it out."""
    name = record.hosts.get(host_uid(where))
    return where if name is None else f"instance {name}"


def _not_created(record: BatchRecord, uid: str) -> ProviderError:
    interrupted = failure(FailureKind.INTERRUPTED, where=_subject(record, uid))
    return error_of(interrupted)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)

"""
Network volumes on AWS: EBS volumes, each with a stack of its own, and file systems that exist already.

The stack creates, grows and deletes the disk. A registered disk is in no stack, so nothing here could delete it. Attachments
and snapshots are calls (`disk_calls`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fleetform.providers.contract.errors import AttachedElsewhere, PermanentError
from fleetform.providers.contract.hosts import PreviewedChange, PreviewedProperty, Report
from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.contract.volumes import DiskSeen, VolumeRequest
from fleetform.providers.pulumi.aws.batches import OpenStack, open_when_free
from fleetform.providers.pulumi.aws.disk_calls import DiskCalls
from fleetform.providers.pulumi.aws.file_systems import look_at_file_system
from fleetform.providers.pulumi.aws.inventory import AwsInventory, ec2_client
from fleetform.providers.pulumi.aws.preflight import require_disk
from fleetform.providers.pulumi.aws.preview import preview_program
from fleetform.providers.pulumi.aws.program import (
    ENVIRONMENT_TAG,
    FLEET_TAG,
    SNAPSHOT,
    VOLUME,
    AwsAccount,
    DiskRequest,
    volume_program,
)
from fleetform.providers.pulumi.aws.requirements import SERVICE, require_installed
from fleetform.providers.pulumi.aws.volume_record import VolumeRecord, read_volume, write_volume
from fleetform.providers.pulumi.engine.changes import Action, Change
from fleetform.providers.pulumi.engine.deployment import Deployment, resources_of
from fleetform.providers.pulumi.engine.failures import FailureKind, error_of, failure
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.runner_slots import RunnerSlots
from fleetform.providers.pulumi.engine.stack import Stack
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG, Existing, Inventory
from fleetform.providers.pulumi.recovery.recover import adopt, listed, recover

__all__ = ["AwsVolumes"]


class AwsVolumes:
    """
    Implements `contract.volumes.VolumeProvider`, for one environment and event loop.

    `stacks` is the folder with the folders of the stacks, `records` has what each contains.
    """

    def __init__(
        self,
        stacks: Path,
        records: StackRecords,
        environment_uid: str,
        open_stack: OpenStack,
        slots: RunnerSlots,
    ) -> None:
        self._stacks = stacks
        self._records = records
        self._environment_uid = environment_uid
        self._open_stack = open_stack
        self._slots = slots
        self._locks: dict[str, asyncio.Lock] = {}

    async def preview(self, request: VolumeRequest) -> Sequence[PreviewedChange]:
        require_installed()
        if request.registered:
            # It exists, or the preview fails: nothing is created.
            await self.ensure(request, lambda _: None)
            return ()
        account, disk = self._account(request), _disk(request)
        if request.id:
            calls, _ = await self._cloud(request)
            seen = await _existing(calls, request, request.id)
            sizes = PreviewedProperty("size", seen.size_gb, disk.size_gb)
            grows = disk.size_gb > seen.size_gb
            return [PreviewedChange(Action.UPDATE, VOLUME, request.name, (sizes,))] if grows else ()
        await asyncio.to_thread(require_disk, account, disk, request.name)
        return await preview_program(
            self._stacks.parent, volume_program(account, disk), self._slots
        )

    async def preview_delete(
        self, request: VolumeRequest, *, with_snapshot: bool
    ) -> Sequence[PreviewedChange]:
        if request.registered or not request.id or await self.observe(request) is None:
            return ()
        deleted = PreviewedChange(Action.DELETE, VOLUME, request.name)
        taken = PreviewedChange(Action.CREATE, SNAPSHOT, request.name)
        return (taken, deleted) if with_snapshot else (deleted,)

    async def ensure(self, request: VolumeRequest, report: Report) -> DiskSeen:
        async with self._lock(request):
            if request.place.get("file_system"):
                return await self._file_system(request)
            calls, inventory = await self._cloud(request)
            if request.registered:
                return await _registered(calls, request)
            name = _stack_of(request)
            record = read_volume(self._records, name) or VolumeRecord(id=request.id)
            # A stack without a record would never be removed.
            write_volume(self._records, name, record)
            program = volume_program(self._account(request), _disk(request))
            async with self._slots.take(), open_when_free(self._open_stack, name) as stack:
                await _settle(stack, program, inventory, request, record, report)
                planned = await stack.preview(program)
                _require_in_place(request, planned)
                if planned:
                    if any(one.action is Action.CREATE for one in planned):
                        report(f"volume {request.name} is being created")
                        record = replace(record, asked=True)
                        # Before the call: if its answer is lost, the inventory is asked first.
                        write_volume(self._records, name, record)
                    (await stack.up(program)).require()
                disk = _id_in(await stack.export_state())
            write_volume(self._records, name, VolumeRecord(disk))
            return await _existing(calls, request, disk)

    async def attach(self, request: VolumeRequest, instance: str, report: Report) -> None:
        async with self._lock(request):
            calls, _ = await self._cloud(request)
            seen = await _existing(calls, request, request.id)
            if seen.instance == instance:
                return
            _require_free(request, seen)
            report(f"volume {request.name}: attaching {seen.id} to {instance}")
            await calls.attach(seen.id, instance)

    async def detach(self, request: VolumeRequest, report: Report) -> None:
        async with self._lock(request):
            calls, _ = await self._cloud(request)
            seen = await calls.look(request.id)
            if seen is None or not seen.instance:
                return
            # The ledger notes an instance before the disk is attached to it: a controller that was killed in
            # between has attached nothing, and a person may have attached the disk elsewhere since.
            if await calls.environment_of(seen.instance) == self._environment_uid:
                await calls.detach(seen.id, report)
            else:
                report(
                    f"volume {request.name}: {seen.id} stays attached to {seen.instance}, which is no host of"
                    " this environment"
                )

    async def snapshot(self, request: VolumeRequest, operation_uid: str, report: Report) -> str:
        async with self._lock(request):
            calls, _ = await self._cloud(request)
            seen = await calls.look(request.id)
            if seen is None:
                return ""
            _require_free(request, seen)
            tags = {
                "Name": request.name,
                ENVIRONMENT_TAG: self._environment_uid,
                IDENTITY_TAG: request.uid,
            }
            return await calls.snapshot(seen.id, tags, operation_uid, report)

    async def delete(self, request: VolumeRequest, report: Report) -> None:
        assert not request.registered, f"{request.registered} is registered, and never deleted"
        async with self._lock(request):
            name = _stack_of(request)
            record = read_volume(self._records, name) or VolumeRecord(id=request.id)
            if not (record.id or record.asked):
                return
            calls, inventory = await self._cloud(request)
            program = volume_program(self._account(request), _disk(request))
            async with (
                self._slots.take(is_release=True),
                open_when_free(self._open_stack, name) as stack,
            ):
                await _settle(stack, program, inventory, request, record, report, must_exist=False)
                state = await stack.export_state()
                seen = await calls.look(_id_in(state)) if _id_in(state) else None
                if seen is not None:
                    _require_free(request, seen)
                # The plan that this step is of has shown the loss; nothing else lifts the protection.
                await stack.import_state(_unprotected(state))
                (await stack.destroy()).require()
                await stack.remove()
            self._forget(name)

    async def release(self, request: VolumeRequest) -> None:
        async with self._lock(request):
            if request.registered:
                return
            if request.id:
                # A disk with the tags of the environment is one that its ledger knows.
                calls, _ = await self._cloud(request)
                if await calls.look(request.id) is not None:
                    await calls.untag(request.id, (ENVIRONMENT_TAG, IDENTITY_TAG))
            name = _stack_of(request)
            if read_volume(self._records, name) is None:
                return
            async with (
                self._slots.take(is_release=True),
                open_when_free(self._open_stack, name) as stack,
            ):
                state = await stack.export_state()
                await stack.import_state({**state, "resources": [], "pending_operations": []})
                await stack.remove()
            self._forget(name)

    async def observe(self, request: VolumeRequest) -> DiskSeen | None:
        if request.place.get("file_system"):
            return await self._look_at_file_system(request)
        calls, _ = await self._cloud(request)
        return await calls.look(request.registered or request.id)

    # -- parts ------------------------------------------------------------------------------------

    async def _file_system(self, request: VolumeRequest) -> DiskSeen:
        seen = await self._look_at_file_system(request)
        if seen is None:
            raise PermanentError(
                f"volume {request.name}: {request.registered} does not exist in {request.place['region']},"
                f" as a file system of kind {request.place['file_system']}",
                advice="correct `volume_id`, `region` or `aws` of the volume",
            )
        return seen

    async def _look_at_file_system(self, request: VolumeRequest) -> DiskSeen | None:
        require_installed()
        return await asyncio.to_thread(
            look_at_file_system,
            self._account(request),
            request.place["file_system"],
            request.registered,
            f"volume {request.name}",
        )

    async def _cloud(self, request: VolumeRequest) -> tuple[DiskCalls, Inventory]:
        require_installed()
        client = await asyncio.to_thread(ec2_client, self._account(request))
        return DiskCalls(client, f"volume {request.name}"), AwsInventory(
            client, self._environment_uid
        )

    def _account(self, request: VolumeRequest) -> AwsAccount:
        return AwsAccount(
            request.place["region"],
            request.place["account"],
            self._environment_uid,
            endpoint=os.environ.get(SERVICE, ""),
        )

    def _forget(self, name: str) -> None:
        self._records.remove(name)
        shutil.rmtree(self._stacks / name, ignore_errors=True)

    def _lock(self, request: VolumeRequest) -> asyncio.Lock:
        return self._locks.setdefault(request.uid, asyncio.Lock())


def _stack_of(request: VolumeRequest) -> str:
    # By the uid alone: a volume may get another name.
    return f"volume-{request.uid}"


def _disk(request: VolumeRequest) -> DiskRequest:
    return DiskRequest(
        uid=request.uid,
        name=request.name,
        zone=request.place["zone"],
        size_gb=request.place["size_gb"],
        encrypted=request.place["encrypted"],
        snapshot=request.place.get("snapshot", ""),
    )


async def _settle(
    stack: Stack,
    program: Program,
    inventory: Inventory,
    request: VolumeRequest,
    record: VolumeRecord,
    report: Report,
    *,
    must_exist: bool = True,
) -> None:
    """
    Settle what was cut off, and give a state that is lost its disk again.

    Raises:
        PermanentError: The disk was created before, and is gone.
    """
    await recover(stack, program, inventory)
    if _id_in(await stack.export_state()):
        return
    if record.asked:
        report(
            f"an earlier change of volume {request.name} was cut off: waiting up to 10 minutes until the"
            " cloud lists what it created"
        )
        listing = await listed(inventory, frozenset({request.uid}))
    else:
        listing = await inventory.existing()
    existing = [one for one in listing if _is_of(one, request)]
    if existing:
        await adopt(stack, program, existing)
    elif record.id and must_exist:
        raise _gone(request, record.id)
    elif must_exist and not record.asked:
        _require_unknown(listing, request)


def _require_unknown(everything: Sequence[Existing], request: VolumeRequest) -> None:
    """
    Make sure that the environment has no disk of this name, which an older or lost ledger does not know.

    Raises:
        PermanentError: It has one; a second one would be empty.
    """
    for one in everything:
        # Disks of hosts have their fleet.
        is_disk = one.type == VOLUME and FLEET_TAG not in one.tags
        if is_disk and one.tags.get("Name") == request.name:
            raise PermanentError(
                f"volume {request.name}: the environment has the disk {one.id} of this name already, and"
                " its ledger does not know it",
                advice=f"write `volume_id: {one.id}` in place of `size` to use it, or delete it",
            )


def _is_of(one: Existing, request: VolumeRequest) -> bool:
    return one.type == VOLUME and one.tags.get(IDENTITY_TAG) == request.uid


def _id_in(state: Deployment) -> str:
    """Return the id of the disk that a state has; empty: it has none."""
    return next((one.id for one in resources_of(state) if one.type == VOLUME), "")


def _unprotected(state: Deployment) -> Mapping[str, object]:
    resources = [{**one, "protect": False} for one in state.get("resources") or ()]
    return {**state, "resources": resources}


def _require_in_place(request: VolumeRequest, planned: Sequence[Change]) -> None:
    """
    Make sure that a preview creates the disk or changes it in place.

    Raises:
        PermanentError: It would do something else, such as replace it.
    """
    others = [
        f"{one.action} {one.name}"
        for one in planned
        if one.action not in {Action.CREATE, Action.UPDATE} or one.name != request.uid
    ]
    if others:
        raise error_of(
            failure(FailureKind.UNPLANNED, where=f"volume {request.name}", why=", ".join(others))
        )


async def _registered(calls: DiskCalls, request: VolumeRequest) -> DiskSeen:
    seen = await _existing(calls, request, request.registered)
    zone = request.place["zone"]
    if seen.zone != zone:
        raise PermanentError(
            f"volume {request.name}: {seen.id} is in zone {seen.zone}, and the document says {zone}",
            advice=f"write `availability_zone: {seen.zone}`",
        )
    return seen


async def _existing(calls: DiskCalls, request: VolumeRequest, disk: str) -> DiskSeen:
    seen = await calls.look(disk)
    if seen is None:
        raise _gone(request, disk)
    return seen


def _require_free(request: VolumeRequest, seen: DiskSeen) -> None:
    """
    Make sure that a disk is attached to nothing.

    Raises:
        AttachedElsewhere: It is, and not by this environment.
    """
    if seen.instance:
        raise AttachedElsewhere(
            f"volume {request.name}: {seen.id} is attached to {seen.instance}, which is no host that"
            " mounts it",
            advice=f"detach it there: `aws ec2 detach-volume --volume-id {seen.id}`",
        )


def _gone(request: VolumeRequest, disk: str) -> PermanentError:
    where = f"account {request.place['account']} in {request.place['region']}"
    if request.registered:
        return PermanentError(
            f"volume {request.name}: {disk} does not exist in {where}",
            advice=(
                "correct `volume_id`, `region` or `account`; a disk of another account cannot be attached:"
                " share a snapshot of it with this account, and write its id as `aws.snapshot_id`, with"
                " `size` in place of `volume_id`"
            ),
        )
    return PermanentError(
        f"volume {request.name}: {disk} no longer exists in {where}",
        advice=(
            "start with an empty disk, or with one from a snapshot (`aws.snapshot_id`):"
            f" `fleetform apply --allow-destroy --replace volume/{request.name}`"
        ),
    )

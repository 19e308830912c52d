"""
Which hosts of a batch exist, before anything of it is changed: state, record and inventory are compared once.

What an earlier change has left is settled, a lost state is rebuilt, and the state is refreshed only where the inventory differs. A
second instance of one host is a purchase that was made twice: the one whose address no
controller has is terminated here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from fleetform.providers.contract.errors import StateLost
from fleetform.providers.contract.hosts import CreatedHost, Report
from fleetform.providers.pulumi.aws.batch_record import BatchRecord
from fleetform.providers.pulumi.aws.program import (
    ADDRESS,
    SECURITY_GROUP,
    SSH_PORT,
    HostTemplate,
    host_uid,
)
from fleetform.providers.pulumi.engine.deployment import Deployment, resources_of
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.stack import Stack
from fleetform.providers.pulumi.recovery.existence import compare_existence
from fleetform.providers.pulumi.recovery.inventory import (
    IDENTITY_TAG,
    Existing,
    Inventory,
    KnownFirst,
)
from fleetform.providers.pulumi.recovery.recover import adopt, recover

__all__ = ["INSTANCE", "HostInventory", "hosts_of", "settle_shared", "settled_hosts", "ssh_ranges"]

INSTANCE = "aws:ec2/instance:Instance"


class HostInventory(Inventory, Protocol):
    """Lists the things of one environment, and ends instances that no stack has."""

    async def terminate(self, ids: Sequence[str]) -> None: ...


async def settled_hosts(
    stack: Stack, program: Program, inventory: HostInventory, record: BatchRecord, report: Report
) -> Mapping[str, CreatedHost]:
    """
    Settle a batch, and return the hosts that exist, by uid.

    An instance may exist that neither the state nor its pending operations have: the engine forgets a create that
    was interrupted after the request was sent. So each uid of the record is looked up in the inventory.

    Args:
        stack: Open.
        program: With all hosts of the record.
        inventory: Of the account and region.
        record: What the batch should have. Those of it that were asked for without an answer are listed, or were not created.
        report: Told what is happening.

    Raises:
        ProviderError: It is not known what exists, and nothing may be changed.
    """
    ordered = KnownFirst(inventory, frozenset(record.created.values()))
    now = datetime.fromtimestamp(time.time(), UTC)
    since_ms = record.missing_since_ms
    waited_seconds = 0.0 if since_ms is None else now.timestamp() - since_ms / 1000
    await _recovered(stack, program, ordered, report, waited_seconds=waited_seconds)
    deployment = await stack.export_state()
    existing = await ordered.existing()
    found = compare_existence({stack.name: deployment}, existing, now=now)
    if _of(record, found.unknown):
        await adopt(stack, program, existing)
    elif found.gone or any(one.get("initErrors") for one in deployment.get("resources") or ()):
        # Created and not waited for, or gone: the next preview would otherwise update it.
        await stack.refresh(program)
    deployment = await stack.export_state()
    doubled = compare_existence({stack.name: deployment}, existing, now=now).doubled
    instances = [one for one in _of(record, doubled) if one.type == INSTANCE]
    await _end_doubles(record, instances, inventory, report)
    created = {one.id: one.created_at_ms for one in existing}
    return hosts_of(deployment, record.template, created)


async def settle_shared(
    stack: Stack, program: Program, inventory: Inventory, uid: str, report: Report
) -> None:
    """
    Settle the shared parts of hosts, which have one uid: what exists is in the state when this returns.

    Raises:
        ProviderError: It is not known what exists, and nothing may be changed.
    """
    await _recovered(stack, program, inventory, report)
    known = {(one.type, one.id) for one in resources_of(await stack.export_state())}
    existing = [one for one in await inventory.existing() if one.tags.get(IDENTITY_TAG) == uid]
    if any((one.type, one.id) not in known for one in existing):
        await adopt(stack, program, existing)


async def _recovered(
    stack: Stack,
    program: Program,
    inventory: Inventory,
    report: Report,
    *,
    waited_seconds: float = 0.0,
) -> None:
    try:
        await recover(stack, program, inventory, waited_seconds=waited_seconds)
    except StateLost:
        report(f"the state of {stack.name} is lost: it is rebuilt from what the cloud lists")
        await stack.create()


def hosts_of(
    deployment: Deployment, template: HostTemplate, created: Mapping[str, int | None]
) -> dict[str, CreatedHost]:
    """
    Return the instances that a state says to exist, by uid; one that lacks its Elastic IP has no address.

    `created` is when those were created that existed before, by id.
    """
    resources = resources_of(deployment)
    elastic = {
        host_uid(one.name): str(one.outputs.get("publicIp") or "")
        for one in resources
        if one.type == ADDRESS and one.outputs.get("associationId")
    }
    return {
        one.name: CreatedHost(
            one.id,
            elastic.get(one.name, "")
            if template.elastic_address
            else str(one.outputs.get("publicIp") or one.outputs.get("privateIp") or ""),
            image=str(one.outputs.get("ami") or ""),
            zone=str(one.outputs.get("availabilityZone") or ""),
            created_at_ms=created.get(one.id),
        )
        for one in resources
        if one.type == INSTANCE
    }


def ssh_ranges(deployment: Deployment) -> tuple[str, ...]:
    """Return the addresses from which the security group of a state accepts SSH, in order."""
    groups = [one for one in resources_of(deployment) if one.name == SECURITY_GROUP]
    rules = [rule for one in groups for rule in one.outputs.get("ingress") or ()]
    ranges = [rule.get("cidrBlocks") or () for rule in rules if _is_ssh(rule)]
    return tuple(dict.fromkeys(one for some in ranges for one in some))


def _is_ssh(rule: Mapping[str, Any]) -> bool:
    ports = (rule.get("fromPort"), rule.get("toPort"))
    return rule.get("protocol") == "tcp" and ports == (SSH_PORT, SSH_PORT)


async def _end_doubles(
    record: BatchRecord, doubled: Sequence[Existing], inventory: HostInventory, report: Report
) -> None:
    # An id that was written down may have been told to the ledger, and an agent may be there.
    never_told = [one for one in doubled if one.id not in record.created.values()]
    for one in never_told:
        host = record.hosts[one.tags[IDENTITY_TAG]]
        report(f"{one.id} is a second instance of host {host} without an agent: it is terminated")
    if never_told:
        await inventory.terminate([one.id for one in never_told])


def _of(record: BatchRecord, things: Sequence[Existing]) -> list[Existing]:
    return [
        one
        for one in things
        if one.type in {INSTANCE, ADDRESS} and one.tags.get(IDENTITY_TAG) in record.hosts
    ]

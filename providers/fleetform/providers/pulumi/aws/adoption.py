"""
Which stack releases an instance that the ledger does not know: the one whose record has it, else the one that its tags name.

An instance that differs from the others of that stack, or that no change of the stack has created, gets a stack of its own:
the program of a stack has one template, and a difference would block each later change of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.pulumi.aws.batch_record import BatchRecord, read_record
from fleetform.providers.pulumi.aws.place import stack_of

__all__ = ["adopted_batches", "request_for"]


def request_for(instance: InstanceSeen) -> InstanceRequest:
    """Return the request for an instance that a cloud lists."""
    return InstanceRequest(
        instance.uid, instance.name, instance.fleet, instance.declared,
        provider=instance.provider, endpoint=instance.endpoint, host_key=instance.host_key,
    )  # fmt: skip


def adopted_batches(
    instances: Sequence[InstanceSeen],
    records: StackRecords,
    record_of: Callable[[InstanceRequest], BatchRecord],
) -> tuple[Mapping[str, str], tuple[tuple[InstanceRequest, BatchRecord], ...]]:
    """
    Choose a stack for each instance.

    Args:
        instances: With what they are in their endpoints, and there as `stack` what their tags say.
        records: Of the stacks.
        record_of: Returns the batch of one host.

    Returns:
        The name of the stack by uid, and the batches that have no record yet, each with the request for one of its hosts.
    """
    names: dict[str, str] = {}
    new: dict[str, tuple[InstanceRequest, BatchRecord]] = {}
    for one in instances:
        request = request_for(one)
        record = record_of(request)
        known = read_record(records, record.stack)
        cloud_id = one.endpoint["id"]
        if known is not None and known.created.get(one.uid) == cloud_id and one.uid in known.hosts:
            names[one.uid] = record.stack
            continue
        first = new.get(record.stack, (request, record))[1]
        if known is not None or first.template != record.template:
            own = {name: one.endpoint[name] for name in one.endpoint if name != "stack"}
            request = replace(request, endpoint=own)
            record = first = replace(record, stack=stack_of(request))
        batch = first.with_hosts({one.uid: one.name}).with_created({one.uid: cloud_id})
        new[record.stack] = (request, batch)
        names[one.uid] = record.stack
    return names, tuple(new[stack] for stack in sorted(new))

"""Filters of `Describe…` calls, with the wildcards of AWS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from cloud.wire import Refusal

_PATHS = {
    "architecture": ("Architecture",),
    "availability-zone": ("Placement", "AvailabilityZone"),
    "group-name": ("GroupName",),
    "instance-id": ("InstanceId",),
    "instance-lifecycle": ("InstanceLifecycle",),
    "instance-state-name": ("State", "Name"),
    "instance-type": ("InstanceType",),
    "image-id": ("ImageId",),
    "key-name": ("KeyName",),
    "name": ("Name",),
    "owner-alias": ("ImageOwnerAlias",),
    "owner-id": ("OwnerId",),
    "placement-group-name": ("Placement", "GroupName"),
    "private-ip-address": ("PrivateIpAddress",),
    "root-device-type": ("RootDeviceType",),
    "spot-instance-request-id": ("SpotInstanceRequestId",),
    "state": ("State",),
    "strategy": ("Strategy",),
    "subnet-id": ("SubnetId",),
    "virtualization-type": ("VirtualizationType",),
    "vpc-id": ("VpcId",),
}


def matches(item: Mapping[str, Any], filters: Iterable[Mapping[str, Any]]) -> bool:
    """Say whether every filter has a value that the item has; an unknown filter is refused."""
    return all(
        any(fnmatchcase(value, wanted) for value in _values(item, rule["Name"]) for wanted in rule["Values"])
        for rule in filters
    )  # fmt: skip


def _values(item: Mapping[str, Any], name: str) -> list[str]:
    tags = item.get("Tags", [])
    if name == "tag-key":
        return [tag["Key"] for tag in tags]
    if name.startswith("tag:"):
        return [tag["Value"] for tag in tags if tag["Key"] == name.removeprefix("tag:")]
    if name not in _PATHS:
        raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
    value: Any = item
    for key in _PATHS[name]:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [] if value is None else [str(value)]

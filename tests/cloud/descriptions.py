"""Instances as EC2 describes them, and how they end."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from cloud.moto_calls import call_moto
from cloud.region import InstanceRecord, Pace, Region
from cloud.wire import Call

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}


def descriptions(region: Region) -> Iterator[dict[str, Any]]:
    return (describe(region, identity) for identity in region.instances)


def describe(region: Region, identity: str) -> dict[str, Any]:
    """Return the description of an instance as EC2 gives it, whatever lists show."""
    row = region.instances[identity]
    let_die(region, identity, row)
    if row.seen is None:
        call = Call("ec2", "DescribeInstances", region.name, "A", {"InstanceIds": [identity]})
        row.seen = call_moto(call, region.account)["Reservations"][0]["Instances"][0]
    result = {**row.seen, **{key: value for key, value in row.extra.items() if key[0] != "_"}}
    if "InstanceLifecycle" not in row.extra:
        result.pop("InstanceLifecycle", None)
    state = result["State"]["Name"]
    age = region.clock() - row.created
    if state == "running" and (age < row.pace.pending_seconds or row.pace.dies_seconds is not None):
        state = "pending"
    result["State"] = {"Name": state, "Code": CODES.get(state, 64)}
    if row.reason:
        result["StateReason"] = {"Code": row.reason[0], "Message": row.reason[1]}
        result["StateTransitionReason"] = row.reason[1]
    set_addresses(region, row, result)
    return result


def let_die(region: Region, identity: str, row: InstanceRecord) -> None:
    dies = row.pace.dies_seconds
    if dies is not None and row.ended is None and region.clock() - row.created >= dies:
        end(
            region,
            identity,
            "Server.InternalError",
            "Server.InternalError: Internal error on launch",
        )


def set_addresses(region: Region, row: InstanceRecord, result: dict[str, Any]) -> None:
    ended = result["State"]["Name"] == "terminated"
    interfaces = [*copy.deepcopy(result.get("NetworkInterfaces", [])), *row.cards]
    for number, interface in enumerate(interfaces):
        owned = interface.get("Association", {}).get("PublicIp") in region.elastic
        public = number == 0 and (row.public or owned)
        address = region.elastic.get(interface.get("Association", {}).get("PublicIp"), row.address)
        interface.pop("Association", None)
        if number == 0:
            interface.update(row.extra.get("_first", {}))
            interface["PrivateIpAddress"] = row.address
            interface["PrivateIpAddresses"] = [{"Primary": True, "PrivateIpAddress": row.address}]
        if public:
            interface["Association"] = {"PublicIp": address, "IpOwnerId": "amazon"}
            result["PublicIpAddress"] = address
            result["PublicDnsName"] = ""
        elif number == 0:
            result.pop("PublicIpAddress", None)
            result.pop("PublicDnsName", None)
    result["NetworkInterfaces"] = [] if ended else interfaces
    result["PrivateIpAddress"] = row.address
    result["PrivateDnsName"] = f"ip-{row.address.replace('.', '-')}.ec2.internal"
    if ended:
        for name in ("PublicIpAddress", "PublicDnsName", "PrivateIpAddress"):
            result.pop(name, None)


def end(region: Region, identity: str, code: str, message: str) -> None:
    """Terminate an instance as EC2 itself does."""
    row = region.instances[identity]
    call = Call("ec2", "TerminateInstances", region.name, "A", {"InstanceIds": [identity]})
    row.pace = Pace()
    protected = {"InstanceId": identity, "DisableApiTermination": {"Value": False}}
    region.other(call, "ModifyInstanceAttribute", **protected)
    call_moto(call, region.account)
    note_end(region, identity, code, message)


def note_end(region: Region, identity: str, code: str, message: str) -> None:
    row = region.instances[identity]
    row.pace = Pace()
    row.ended, row.seen, row.reason = region.clock(), None, (code, message)
    for request in region.spot_requests.values():
        if request["InstanceId"] == identity:
            request["State"] = "closed"
    if region.hosts is not None:
        region.hosts.end(identity)

"""Lists of instances, their end, and their console."""

from __future__ import annotations

import base64
from typing import Any

from cloud.descriptions import describe, note_end
from cloud.filters import matches
from cloud.region import Region
from cloud.wire import Call, Refusal

CONSOLE_CHARACTERS_MAX = 64 << 10
"""EC2 keeps the last 64 KB."""


def describe_instances(region: Region, call: Call) -> dict[str, Any]:
    parameters = call.parameters
    asked = parameters.get("InstanceIds", [])
    if asked and "MaxResults" in parameters:
        raise Refusal(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    for identity in asked:
        if identity not in region.instances or is_unseen(region, identity):
            raise Refusal(
                "InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist"
            )
    keys = asked or [key for key in region.instances if not is_unseen(region, key)]
    described = ((region.instances[key], listed(region, key)) for key in keys)
    found = [(row, one) for row, one in described if matches(one, parameters.get("Filters", []))]
    size = int(parameters.get("MaxResults", 1000))
    start = int(parameters.get("NextToken", "0"))
    page = found[start : start + size]
    result: dict[str, Any] = {
        "Reservations": [{**row.reservation, "Instances": [one]} for row, one in page]
    }
    if start + size < len(found):
        result["NextToken"] = str(start + size)
    return result


def is_unseen(region: Region, identity: str) -> bool:
    return region.clock() - region.instances[identity].created < region.lag_seconds


def listed(region: Region, identity: str) -> dict[str, Any]:
    one = describe(region, identity)
    ended = region.instances[identity].ended
    if ended is not None and region.clock() - ended < region.lag_seconds:
        one["State"] = {"Name": "running", "Code": 16}
    return one


def terminate_instances(region: Region, call: Call) -> dict[str, Any]:
    rows = []
    for identity in call.parameters["InstanceIds"]:
        if identity not in region.instances:
            raise Refusal(
                "InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist"
            )
        rows.append((identity, describe(region, identity)["State"]))
    # EC2 answers alike for one that has ended; moto would look for its interface.
    running = [identity for identity, before in rows if before["Name"] != "terminated"]
    if running:
        region.moto(call, InstanceIds=running)
    for identity in running:
        note_end(region, identity, "Client.UserInitiatedShutdown", "User initiated")
    return {
        "TerminatingInstances": [
            {
                "InstanceId": identity,
                "PreviousState": before,
                "CurrentState": {"Name": "shutting-down", "Code": 32},
            }
            for identity, before in rows
        ]
    }


def console_output(region: Region, call: Call) -> dict[str, Any]:
    identity = call.parameters["InstanceId"]
    if identity not in region.instances:
        raise Refusal("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
    printed = region.consoles.get(identity, "")
    if region.hosts is not None and identity not in region.consoles:
        printed = region.hosts.console(identity)[-CONSOLE_CHARACTERS_MAX:]
    text = base64.b64encode(printed.encode()).decode()
    return {"InstanceId": identity, "Output": text}


HANDLERS = {
    "DescribeInstances": describe_instances,
    "GetConsoleOutput": console_output,
    "TerminateInstances": terminate_instances,
}

"""
Operations on stacks in a process of its own, as fleetform runs them.

It reads a request, which is a line of JSON, and prints a line with the result of each operation, up to
the first that fails; `state` is read in any case. The Automation API keeps connections and threads for
the life of its process, so no test imports it; importing it takes longer than an operation, so one
process serves many requests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi import automation
from pulumi.automation.errors import CommandError

PARAMETER = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"


def hosts(
    image: str,
    count: int = 1,
    scarce: str = "",
    provider: dict[str, Any] | None = None,
    **changed: Any,
) -> None:
    """Declare `count` instances with a name each, and one of a type that is scarce."""
    options = pulumi.ResourceOptions(provider=aws.Provider("aws", **provider) if provider else None)
    kinds = {f"host-{number}": "g5.xlarge" for number in range(count)}
    for name, kind in (kinds | ({"scarce": scarce} if scarce else {})).items():
        given = {"ami": image, "instance_type": kind, "tags": {"uid": name}}
        aws.ec2.Instance(name, **{**given, **changed}, opts=options)


def fleet(image: str, public_key: str) -> None:
    """Declare every resource that a fleet or a volume of fleetform has."""
    assert aws.ssm.get_parameter(name=PARAMETER).value == image
    vpc = aws.ec2.get_vpc(default=True)
    subnet = aws.ec2.get_subnets(filters=[
        {"name": "vpc-id", "values": [vpc.id]}, {"name": "availability-zone", "values": ["us-east-1a"]},
    ]).ids[0]  # fmt: skip
    ssh = {"protocol": "tcp", "from_port": 22, "to_port": 22, "cidr_blocks": ["10.0.0.0/8"]}
    inside = {"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}
    out = {"protocol": "-1", "from_port": 0, "to_port": 0, "cidr_blocks": ["0.0.0.0/0"]}
    group = aws.ec2.SecurityGroup("ssh", vpc_id=vpc.id, ingress=[ssh, inside], egress=[out])
    key = aws.ec2.KeyPair("key", public_key=public_key)
    cluster = aws.ec2.PlacementGroup("cluster", strategy="cluster")
    host = aws.ec2.Instance(
        "host",
        ami=image,
        instance_type="g5.xlarge",
        subnet_id=subnet,
        key_name=key.key_name,
        placement_group=cluster.name,
        vpc_security_group_ids=[group.id],
        user_data="#cloud-config\n",
        instance_initiated_shutdown_behavior="terminate",
        metadata_options={"http_tokens": "required", "http_put_response_hop_limit": 1},
        root_block_device={"volume_size": 100, "volume_type": "gp3"},
        tags={"uid": "host", "environment": "e"},
    )
    volume = aws.ebs.Volume("data", availability_zone="us-east-1a", size=10, type="gp3")
    aws.ec2.VolumeAttachment(
        "data", device_name="/dev/sdf", volume_id=volume.id, instance_id=host.id, force_detach=True
    )
    aws.ebs.Snapshot("before", volume_id=volume.id)
    address = aws.ec2.Eip("address", domain="vpc", instance=host.id)
    cards = [
        {"device_index": min(card, 1), "network_card_index": card, "interface_type": "efa"}
        for card in range(2)
    ]
    template = aws.ec2.LaunchTemplate(
        "efa", image_id=image, instance_type="p5.48xlarge", network_interfaces=cards
    )
    by_template = {"id": template.id, "version": "$Latest"}
    aws.ec2.Instance("efa", launch_template=by_template, tags={"uid": "efa"})
    pulumi.export("address", address.public_ip)


PROGRAMS: dict[str, Callable[..., None]] = {"fleet": fleet, "hosts": hosts}


def operate(stack: automation.Stack, operation: str) -> dict[str, Any]:
    """Run one operation; return the counts of its steps, the outputs, and the steps of instances."""
    events: list[automation.EngineEvent] = []
    run: dict[str, Callable[[], Any]] = {
        "preview": lambda: stack.preview(on_event=events.append),
        "up": stack.up,
        "up and continue": lambda: stack.up(continue_on_error=True),
        "refresh": lambda: stack.refresh(run_program=True),
        "destroy": stack.destroy,
    }
    try:
        result = run[operation]()
    except CommandError as error:
        return {"error": str(error)}
    summary = getattr(result, "change_summary", None)
    changes = summary if summary is not None else result.summary.resource_changes
    return {
        "counts": {str(getattr(kind, "value", kind)): number for kind, number in changes.items()},
        "outputs": {name: one.value for name, one in getattr(result, "outputs", {}).items()},
        "steps": _instance_steps(events),
    }


def _instance_steps(events: list[automation.EngineEvent]) -> dict[str, list[str]]:
    rows = [event.resource_pre_event.metadata for event in events if event.resource_pre_event]
    return {
        str(row.op.value): sorted(row.detailed_diff or ())
        for row in rows
        if row.type == "aws:ec2/instance:Instance"
    }


def answer(asked: dict[str, Any]) -> list[dict[str, Any]]:
    def program() -> None:
        PROGRAMS[asked["program"]](**asked["arguments"])

    options = automation.LocalWorkspaceOptions(env_vars=asked["variables"])
    stack = automation.create_or_select_stack(asked["stack"], "tests", program, opts=options)
    results: list[dict[str, Any]] = []
    for operation in asked["operations"]:
        if operation == "state":
            results.append(stack.export_stack().deployment)
        elif not any("error" in one for one in results):
            results.append(operate(stack, operation))
    return results


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

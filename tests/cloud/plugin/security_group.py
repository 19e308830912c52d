"""`aws:ec2/securityGroup:SecurityGroup` with its rules: what the program lists, and nothing else."""

from __future__ import annotations

from typing import Any

from cloud.plugin.client import Aws, CallError
from cloud.plugin.shapes import Outputs, PartialFailure, Values, change_tags, tag_sets, tags_of

INPUTS = frozenset({
    "description", "egress", "ingress", "name", "revokeRulesOnDelete", "tags", "vpcId",
})  # fmt: skip
_CALLS = {"ingress": "SecurityGroupIngress", "egress": "SecurityGroupEgress"}


def create(aws: Aws, inputs: Values) -> str:
    vpc = inputs.get("vpcId") or _default_vpc(aws)
    identity = aws.ec2(
        "CreateSecurityGroup",
        GroupName=inputs["name"],
        Description=inputs["description"],
        VpcId=vpc,
        **tag_sets(aws, inputs, "security-group"),
    )["GroupId"]
    try:
        # EC2 allows all egress of a new group; the provider takes the rule away.
        _revoke(aws, identity, "egress", [{"protocol": "-1", "cidrBlocks": ["0.0.0.0/0"]}])
        for direction in _CALLS:
            _authorize(aws, identity, direction, inputs.get(direction, []))
    except CallError as error:
        raise PartialFailure(
            str(identity), f"updating Security Group ({identity}): {error}"
        ) from error
    return str(identity)


def _default_vpc(aws: Aws) -> str:
    rule = {"Name": "is-default", "Values": ["true"]}
    rows = aws.ec2("DescribeVpcs", Filters=[rule])["Vpcs"]
    if not rows:
        raise CallError("no default VPC", "VPCIdNotSpecified")
    return str(rows[0]["VpcId"])


def _permissions(identity: str, rules: list[Any]) -> list[dict[str, Any]]:
    result = []
    for rule in rules:
        protocol = "-1" if rule["protocol"] in {"-1", "all"} else rule["protocol"]
        permission: dict[str, Any] = {"IpProtocol": protocol}
        if protocol != "-1":
            permission |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
        about = {"Description": rule["description"]} if rule.get("description") else {}
        ranges = [{"CidrIp": cidr, **about} for cidr in rule.get("cidrBlocks", [])]
        ranges6 = [{"CidrIpv6": cidr, **about} for cidr in rule.get("ipv6CidrBlocks", [])]
        groups = [*rule.get("securityGroups", []), *([identity] if rule.get("self") else [])]
        if ranges:
            permission["IpRanges"] = ranges
        if ranges6:
            permission["Ipv6Ranges"] = ranges6
        if groups:
            permission["UserIdGroupPairs"] = [{"GroupId": group, **about} for group in groups]
        result.append(permission)
    return result


def _authorize(aws: Aws, identity: str, direction: str, rules: list[Any]) -> None:
    if rules:
        permissions = _permissions(identity, rules)
        aws.ec2(f"Authorize{_CALLS[direction]}", GroupId=identity, IpPermissions=permissions)


def _revoke(aws: Aws, identity: str, direction: str, rules: list[Any]) -> None:
    if rules:
        permissions = _permissions(identity, rules)
        aws.ec2(f"Revoke{_CALLS[direction]}", GroupId=identity, IpPermissions=permissions)


def read(aws: Aws, identity: str, state: Values) -> Outputs | None:
    try:
        found = aws.ec2("DescribeSecurityGroups", GroupIds=[identity])["SecurityGroups"][0]
    except CallError as error:
        if error.code.endswith("NotFound"):
            return None
        raise
    outputs: Outputs = {
        "arn": f"arn:aws:ec2:{aws.region}:{aws.account}:security-group/{identity}",
        "name": found["GroupName"],
        "description": found["Description"],
        "ownerId": found["OwnerId"],
        "vpcId": found["VpcId"],
        **tags_of(aws, found),
    }
    for direction, member in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
        given = state.get(direction, [])
        now = _flat(found[member], identity)
        # Rules that are as declared are shown as declared: AWS merges and orders them.
        same = _flat(_permissions(identity, given), identity) == now
        outputs[direction] = given if same else [_rule(row) for row in now]
    return outputs


_Row = tuple[str, int, int, str, str, str]


def _flat(permissions: list[dict[str, Any]], identity: str) -> list[_Row]:
    """Return one row for each source, in order: protocol, ports, kind, source, description."""
    rows = []
    for one in permissions:
        head = (str(one["IpProtocol"]), int(one.get("FromPort", 0)), int(one.get("ToPort", 0)))
        if head[0] == "-1":
            head = ("-1", 0, 0)
        for member, kind, key in (
            ("IpRanges", "cidrBlocks", "CidrIp"),
            ("Ipv6Ranges", "ipv6CidrBlocks", "CidrIpv6"),
            ("UserIdGroupPairs", "securityGroups", "GroupId"),
        ):
            for source in one.get(member, []):
                own = kind == "securityGroups" and source[key] == identity
                about = source.get("Description", "")
                rows.append((*head, "self" if own else kind, source[key], about))
    return sorted(rows)


def _rule(row: _Row) -> Outputs:
    protocol, first, last, kind, source, about = row
    value: Any = True if kind == "self" else [source]
    described = {"description": about} if about else {}
    return {"protocol": protocol, "fromPort": first, "toPort": last, kind: value, **described}


def update(aws: Aws, identity: str, old: Values, new: Values, changed: set[str]) -> None:
    change_tags(aws, identity, old, new)
    for direction in sorted(changed & _CALLS.keys()):
        # By source, and what is no longer wanted first: so does the plugin of AWS.
        before, after = _single(old.get(direction, [])), _single(new.get(direction, []))
        _revoke(aws, identity, direction, [rule for rule in before if rule not in after])
        _authorize(aws, identity, direction, [rule for rule in after if rule not in before])


def _single(rules: list[Any]) -> list[dict[str, Any]]:
    """Return one rule for each source of these."""
    lists = ("cidrBlocks", "ipv6CidrBlocks", "securityGroups")
    found = []
    for rule in rules:
        head = {name: value for name, value in rule.items() if name not in {*lists, "self"}}
        found += [{**head, name: [one]} for name in lists for one in rule.get(name) or ()]
        if rule.get("self"):
            found.append({**head, "self": True})
    return found


def delete(aws: Aws, identity: str, state: Values) -> None:
    while True:
        try:
            aws.ec2("DeleteSecurityGroup", GroupId=identity)
        except CallError as error:
            if error.code.endswith("NotFound"):
                return
            if error.code != "DependencyViolation":
                raise
            # Interfaces of terminated instances leave a moment later.
            aws.wait(0.5)
        else:
            return

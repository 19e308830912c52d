"""
EC2 of one account and region: moto, with the checks and objects that moto lacks.

moto would accept an unknown image, a type that a zone does not offer, a volume of another zone and a
repeated client token, and its instances have public addresses that exist. Here they are refused, or
have an address that the test chooses.
"""

from __future__ import annotations

import base64
import copy
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cloud import catalog as cat
from cloud.filters import matches
from cloud.moto_calls import call_moto
from cloud.wire import Call, Refusal

Parameters = dict[str, Any]

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}


@dataclass
class Pace:
    """How a new instance comes up; faults change it for the calls that they meet."""

    pending_seconds: float = 0.0
    dies_seconds: float | None = None
    """After so long in `pending` the instance is terminated with `Server.InternalError`."""


@dataclass
class _Instance:
    reservation: dict[str, Any]
    created: float
    pace: Pace
    address: str
    public: bool
    """An address was asked for, or is the default of its subnet."""
    extra: dict[str, Any]
    """Members of the description that moto loses."""
    cards: list[dict[str, Any]]
    """Network interfaces beyond the first one, which moto would mix up."""
    interface_tags: list[dict[str, str]]
    reason: tuple[str, str] | None = None
    seen: dict[str, Any] | None = None
    """moto's description, until a call changes it: reading one takes moto milliseconds."""
    ended: float | None = None


@dataclass
class Ec2:
    account: str
    region: str
    catalog: cat.Catalog
    address: Callable[[Mapping[str, str]], str]
    """Address of an instance or an elastic address, by its tags."""
    clock: Callable[[], float] = time.monotonic
    lag_seconds: float = 0.0
    """For so long lists show neither a new instance nor the end of one."""
    instances: dict[str, _Instance] = field(default_factory=dict)
    placement_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    spot_requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    consoles: dict[str, str] = field(default_factory=dict)
    elastic: dict[str, str] = field(default_factory=dict)
    """Address by the address that moto drew for it, which exists."""
    _tokens: dict[str, tuple[Parameters, dict[str, Any]]] = field(default_factory=dict)

    def answer(self, call: Call, pace: Pace) -> dict[str, Any]:
        """Return the result of a call, or raise `Refusal`."""
        if call.operation == "RunInstances":
            return self._run_instances(call, pace)
        handler = _HANDLERS.get(call.operation)
        try:
            return handler(self, call) if handler else self._moto(call)
        finally:
            self._forget_descriptions(call)

    def _moto(self, call: Call, **changed: Any) -> dict[str, Any]:
        parameters = {**call.parameters, **changed}
        given = {name: value for name, value in parameters.items() if value is not None}
        return call_moto(replace(call, parameters=given), self.account)

    def _other(self, call: Call, operation: str, **parameters: Any) -> dict[str, Any]:
        return call_moto(replace(call, operation=operation, parameters=parameters), self.account)

    def _forget_descriptions(self, call: Call) -> None:
        if call.operation.startswith(("Describe", "Get", "Create", "Import", "Allocate")) and (
            call.operation != "CreateTags"
        ):
            return
        named = set(re.findall(r"\bi-[0-9a-f]+", str(call.parameters)))
        for identity in named or self.instances.keys():
            if identity in self.instances:
                self.instances[identity].seen = None

    # -- Instances

    def _run_instances(self, call: Call, pace: Pace) -> dict[str, Any]:
        parameters = self._with_template(call)
        token = parameters.get("ClientToken", "")
        if token in self._tokens:
            before, result = self._tokens[token]
            if before != parameters:
                raise Refusal(
                    "IdempotentParameterMismatch",
                    "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
                )
            return self._reservation(call, result["ReservationId"])
        kind, zone = self._checked(call, parameters)
        spot = parameters.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
        self._check_quota(kind, int(parameters["MaxCount"]), spot=spot)
        reserved = self._reserve(parameters, kind, zone)
        if call.parameters.get("DryRun"):
            raise Refusal(
                "DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412
            )
        result = self._moto(replace(call, parameters=_for_moto(parameters, zone)))
        for instance in result["Instances"]:
            self._record(call, instance, parameters, result, pace, spot=spot, reserved=reserved)
        if token:
            self._tokens[token] = (parameters, result)
        return self._reservation(call, result["ReservationId"])

    def _with_template(self, call: Call) -> Parameters:
        parameters = copy.deepcopy(call.parameters)
        template = parameters.pop("LaunchTemplate", None)
        if template is None:
            return parameters
        version = template.pop("Version", "$Default")
        found = self._other(call, "DescribeLaunchTemplateVersions", **template, Versions=[version])[
            "LaunchTemplateVersions"
        ]
        if not found:
            raise Refusal("InvalidLaunchTemplateId.VersionNotFound", f"no version {version}")
        data = {**found[0]["LaunchTemplateData"], **self._templates.get(
            (found[0]["LaunchTemplateId"], found[0]["VersionNumber"]), {}
        )}  # fmt: skip
        tags = data.pop("TagSpecifications", []) + parameters.pop("TagSpecifications", [])
        merged = {**data, **parameters}
        return {**merged, "TagSpecifications": tags} if tags else merged

    _templates: dict[tuple[str, int], Parameters] = field(default_factory=dict)
    """Data of launch templates as they were sent: moto loses interface types and cards."""

    def _create_template(self, call: Call) -> dict[str, Any]:
        result = self._moto(call)["LaunchTemplate"]
        self._templates[result["LaunchTemplateId"], 1] = call.parameters["LaunchTemplateData"]
        return {"LaunchTemplate": result}

    def _create_template_version(self, call: Call) -> dict[str, Any]:
        result = self._moto(call)["LaunchTemplateVersion"]
        key = (result["LaunchTemplateId"], int(result["VersionNumber"]))
        self._templates[key] = call.parameters["LaunchTemplateData"]
        return {"LaunchTemplateVersion": result}

    def _checked(self, call: Call, parameters: Parameters) -> tuple[str, str]:
        """Refuse what EC2 refuses; return type and zone."""
        image = parameters.get("ImageId")
        if not image:
            raise Refusal("MissingParameter", "The request must contain the parameter ImageId")
        if image not in self.catalog.images:
            raise Refusal("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
        kind = parameters.get("InstanceType", "m1.small")
        if kind not in cat.instance_types():
            raise Refusal("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
        processors = cat.instance_types()[kind]["ProcessorInfo"]["SupportedArchitectures"]
        architecture = self.catalog.images[image]["Architecture"]
        if architecture not in processors:
            raise Refusal(
                "InvalidParameterValue",
                f"The architecture '{processors[0]}' of the specified instance type does not match the architecture '{architecture}' of the specified AMI.",
            )
        if key := parameters.get("KeyName"):
            self._other(call, "DescribeKeyPairs", KeyNames=[key])
        placement = parameters.get("Placement", {})
        if group := placement.get("GroupName"):
            self._placement_group(group)
        zone = self._zone(call, parameters, kind)
        _check_interfaces(parameters, kind)
        return kind, zone

    def _zone(self, call: Call, parameters: Parameters, kind: str) -> str:
        zones = cat.zones_with(self.region, kind)
        asked = parameters.get("Placement", {}).get("AvailabilityZone")
        subnet = parameters.get("SubnetId") or next(
            (row["SubnetId"] for row in parameters.get("NetworkInterfaces", []) if "SubnetId" in row),
            None,
        )  # fmt: skip
        if subnet:
            asked = self._other(call, "DescribeSubnets", SubnetIds=[subnet])["Subnets"][0][
                "AvailabilityZone"
            ]
        if not asked and zones:
            return zones[0]
        known = self._other(call, "DescribeAvailabilityZones")["AvailabilityZones"]
        if asked and asked not in {row["ZoneName"] for row in known}:
            raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{asked}]")
        if asked not in zones:
            raise Refusal(
                "Unsupported",
                f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({asked}).",
            )
        return str(asked)

    def _check_quota(self, kind: str, count: int, *, spot: bool) -> None:
        code, limit = self.catalog.quota(kind, spot=spot)
        used = sum(
            cat.vcpus(row["InstanceType"])
            for row in map(self.describe, self.instances)
            if row["State"]["Name"] in {"pending", "running"}
            and ("SpotInstanceRequestId" in row) is spot
            and cat.quota_code(row["InstanceType"], spot=spot) == code
        ) if limit < cat.VCPUS else 0  # fmt: skip
        if used + count * cat.vcpus(kind) <= limit:
            return
        if spot:
            raise Refusal("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        raise Refusal(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )

    def _reserve(self, parameters: Parameters, kind: str, zone: str) -> str:
        target = parameters.get("CapacityReservationSpecification", {}).get(
            "CapacityReservationTarget", {}
        )
        identity = str(target.get("CapacityReservationId", ""))
        if not identity:
            return ""
        found = self.reservations.get(identity)
        if found is None or found["State"] != "active":
            raise Refusal(
                "InvalidCapacityReservationId.NotFound",
                f"The capacity reservation '{identity}' does not exist",
            )
        if (found["InstanceType"], found["AvailabilityZone"]) != (kind, zone):
            raise Refusal(
                "InvalidParameterValue",
                "The instance attributes do not match those of the capacity reservation",
            )
        if found["TotalInstanceCount"] - self._in_reservation(identity) < int(
            parameters["MaxCount"]
        ):
            raise Refusal("ReservationCapacityExceeded", "The reservation has no capacity left")
        return identity

    def _in_reservation(self, identity: str) -> int:
        return sum(
            row.get("CapacityReservationId") == identity and row["State"]["Name"] != "terminated"
            for row in map(self.describe, self.instances)
        )

    def _record(
        self,
        call: Call,
        instance: dict[str, Any],
        parameters: Parameters,
        result: dict[str, Any],
        pace: Pace,
        *,
        spot: bool,
        reserved: str,
    ) -> None:
        identity = instance["InstanceId"]
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        extra: dict[str, Any] = {"ClientToken": parameters.get("ClientToken", "")}
        if "CapacityReservationSpecification" in parameters:
            extra["CapacityReservationSpecification"] = parameters[
                "CapacityReservationSpecification"
            ]
        if reserved:
            extra["CapacityReservationId"] = reserved
        placement = parameters.get("Placement", {})
        extra["Placement"] = {**instance["Placement"], **placement}
        extra["Placement"]["AvailabilityZone"] = instance["Placement"]["AvailabilityZone"]
        if spot:
            extra["SpotInstanceRequestId"] = self._request_spot(identity, parameters)
            extra["InstanceLifecycle"] = "spot"
        else:
            instance.pop("InstanceLifecycle", None)
        interfaces = parameters.get("NetworkInterfaces", [])
        first, others = _split_cards(interfaces)
        if len(interfaces) > 1:
            public = False
        elif first and "AssociatePublicIpAddress" in first:
            public = first["AssociatePublicIpAddress"]
        else:
            public = bool(instance.get("PublicIpAddress"))
        cards = [_card(row, instance) for row in others]
        if first and "InterfaceType" in first:
            extra["_first"] = {"InterfaceType": first["InterfaceType"]}
        self.instances[identity] = _Instance(
            {"ReservationId": result["ReservationId"], "OwnerId": self.account, "Groups": []},
            self.clock(),
            pace,
            self.address(tags),
            public,
            extra,
            cards,
            _tags(parameters, "network-interface"),
            # moto's instances run at once; how long one is pending is decided here.
            seen={**instance, "State": {"Name": "running", "Code": 16}},
        )

    def _request_spot(self, identity: str, parameters: Parameters) -> str:
        if not self.catalog.spot_role:
            raise Refusal(
                "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
                "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
                403,
            )
        request = f"sir-{secrets.token_hex(4)}"
        options = parameters["InstanceMarketOptions"].get("SpotOptions", {})
        self.spot_requests[request] = {
            "SpotInstanceRequestId": request,
            "InstanceId": identity,
            "State": "active",
            "Status": {"Code": "fulfilled", "Message": "Your spot request is fulfilled."},
            "Type": options.get("SpotInstanceType", "one-time"),
            "InstanceInterruptionBehavior": options.get(
                "InstanceInterruptionBehavior", "terminate"
            ),
        }
        return request

    def describe(self, identity: str) -> dict[str, Any]:
        """Return the description of an instance as EC2 gives it, whatever lists show."""
        row = self.instances[identity]
        self._let_die(identity, row)
        if row.seen is None:
            call = Call("ec2", "DescribeInstances", self.region, "A", {"InstanceIds": [identity]})
            row.seen = call_moto(call, self.account)["Reservations"][0]["Instances"][0]
        result = {**row.seen, **{key: value for key, value in row.extra.items() if key[0] != "_"}}
        if "InstanceLifecycle" not in row.extra:
            result.pop("InstanceLifecycle", None)
        state = result["State"]["Name"]
        age = self.clock() - row.created
        if state == "running" and (
            age < row.pace.pending_seconds or row.pace.dies_seconds is not None
        ):
            state = "pending"
        result["State"] = {"Name": state, "Code": CODES.get(state, 64)}
        if row.reason:
            result["StateReason"] = {"Code": row.reason[0], "Message": row.reason[1]}
            result["StateTransitionReason"] = row.reason[1]
        self._set_addresses(row, result)
        return result

    def _let_die(self, identity: str, row: _Instance) -> None:
        dies = row.pace.dies_seconds
        if dies is not None and row.ended is None and self.clock() - row.created >= dies:
            self.end(
                identity, "Server.InternalError", "Server.InternalError: Internal error on launch"
            )

    def _set_addresses(self, row: _Instance, result: dict[str, Any]) -> None:
        ended = result["State"]["Name"] == "terminated"
        interfaces = [*copy.deepcopy(result.get("NetworkInterfaces", [])), *row.cards]
        for number, interface in enumerate(interfaces):
            owned = interface.get("Association", {}).get("PublicIp") in self.elastic
            public = number == 0 and (row.public or owned)
            address = self.elastic.get(
                interface.get("Association", {}).get("PublicIp"), row.address
            )
            interface.pop("Association", None)
            if number == 0:
                interface.update(row.extra.get("_first", {}))
                interface["PrivateIpAddress"] = row.address
                interface["PrivateIpAddresses"] = [
                    {"Primary": True, "PrivateIpAddress": row.address}
                ]
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

    def _reservation(self, call: Call, identity: str) -> dict[str, Any]:
        rows = {
            key: row for key, row in self.instances.items()
            if row.reservation["ReservationId"] == identity
        }  # fmt: skip
        head = next(iter(rows.values())).reservation
        described = [self.describe(key) for key in rows]
        for row in described:
            # The answer to the call is always `pending`.
            row["State"] = {"Name": "pending", "Code": 0}
        return {**head, "Instances": described}

    def _describe_instances(self, call: Call) -> dict[str, Any]:
        parameters = call.parameters
        asked = parameters.get("InstanceIds", [])
        if asked and "MaxResults" in parameters:
            raise Refusal(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter maxResults",
            )
        for identity in asked:
            if identity not in self.instances or self._unseen(identity):
                raise Refusal(
                    "InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist"
                )
        keys = asked or [key for key in self.instances if not self._unseen(key)]
        described = ((self.instances[key], self._listed(key)) for key in keys)
        found = [
            (row, one) for row, one in described if matches(one, parameters.get("Filters", []))
        ]
        size = int(parameters.get("MaxResults", 1000))
        start = int(parameters.get("NextToken", "0"))
        page = found[start : start + size]
        result: dict[str, Any] = {
            "Reservations": [{**row.reservation, "Instances": [one]} for row, one in page]
        }
        if start + size < len(found):
            result["NextToken"] = str(start + size)
        return result

    def _unseen(self, identity: str) -> bool:
        return self.clock() - self.instances[identity].created < self.lag_seconds

    def _listed(self, identity: str) -> dict[str, Any]:
        one = self.describe(identity)
        ended = self.instances[identity].ended
        if ended is not None and self.clock() - ended < self.lag_seconds:
            one["State"] = {"Name": "running", "Code": 16}
        return one

    def _terminate_instances(self, call: Call) -> dict[str, Any]:
        rows = []
        for identity in call.parameters["InstanceIds"]:
            if identity not in self.instances:
                raise Refusal(
                    "InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist"
                )
            rows.append((identity, self.describe(identity)["State"]))
        self._moto(call)
        for identity, before in rows:
            if before["Name"] != "terminated":
                self._note_end(identity, "Client.UserInitiatedShutdown", "User initiated")
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

    def end(self, identity: str, code: str, message: str) -> None:
        """Terminate an instance as EC2 itself does."""
        row = self.instances[identity]
        call = Call("ec2", "TerminateInstances", self.region, "A", {"InstanceIds": [identity]})
        row.pace = Pace()
        protected = {"InstanceId": identity, "DisableApiTermination": {"Value": False}}
        self._other(call, "ModifyInstanceAttribute", **protected)
        call_moto(call, self.account)
        self._note_end(identity, code, message)

    def _note_end(self, identity: str, code: str, message: str) -> None:
        row = self.instances[identity]
        row.pace = Pace()
        row.ended, row.seen, row.reason = self.clock(), None, (code, message)
        for request in self.spot_requests.values():
            if request["InstanceId"] == identity:
                request["State"] = "closed"

    def _console(self, call: Call) -> dict[str, Any]:
        identity = call.parameters["InstanceId"]
        if identity not in self.instances:
            raise Refusal(
                "InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist"
            )
        text = base64.b64encode(self.consoles.get(identity, "").encode()).decode()
        return {"InstanceId": identity, "Output": text}

    # -- Volumes

    def _create_volume(self, call: Call) -> dict[str, Any]:
        parameters = call.parameters
        zones = self._other(call, "DescribeAvailabilityZones")["AvailabilityZones"]
        zone = parameters.get("AvailabilityZone")
        if zone not in {row["ZoneName"] for row in zones}:
            raise Refusal("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
        token = parameters.get("ClientToken", "")
        if token in self._tokens:
            before, result = self._tokens[token]
            if before != parameters:
                raise Refusal("IdempotentParameterMismatch", "The parameters of the token differ")
            return result
        result = self._moto(call, ClientToken=None)
        if token:
            self._tokens[token] = (parameters, result)
        return result

    def _attach_volume(self, call: Call) -> dict[str, Any]:
        identity, volume = call.parameters["InstanceId"], call.parameters["VolumeId"]
        if identity not in self.instances:
            raise Refusal(
                "InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist"
            )
        instance = self.describe(identity)
        if instance["State"]["Name"] not in {"running", "stopped"}:
            raise Refusal("IncorrectState", f"Instance '{identity}' is not 'running'.")
        found = self._other(call, "DescribeVolumes", VolumeIds=[volume])["Volumes"][0]
        if found["State"] == "in-use":
            raise Refusal("VolumeInUse", f"{volume} is already attached to an instance")
        zone = instance["Placement"]["AvailabilityZone"]
        if found["AvailabilityZone"] != zone:
            raise Refusal(
                "InvalidVolume.ZoneMismatch",
                f"The volume '{volume}' is not in the same availability zone as instance '{identity}'",
            )
        device = call.parameters["Device"]
        if device in {row["DeviceName"] for row in instance.get("BlockDeviceMappings", [])}:
            raise Refusal(
                "InvalidParameterValue",
                f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use",
            )
        return self._moto(call)

    def _detach_volume(self, call: Call) -> dict[str, Any]:
        volume = call.parameters["VolumeId"]
        found = self._other(call, "DescribeVolumes", VolumeIds=[volume])["Volumes"][0]
        if not found["Attachments"]:
            raise Refusal("IncorrectState", f"Volume '{volume}' is in the 'available' state.")
        identity = found["Attachments"][0]["InstanceId"]
        result = self._moto(
            call, InstanceId=identity, Device=found["Attachments"][0]["Device"], Force=None
        )
        if identity in self.instances:
            self.instances[identity].seen = None
        return result

    # -- Elastic addresses: those of moto exist, so that a test could dial one

    def _allocate_address(self, call: Call) -> dict[str, Any]:
        result = self._moto(call)
        tags = {
            tag["Key"]: tag["Value"]
            for row in call.parameters.get("TagSpecifications", [])
            for tag in row["Tags"]
        }
        self.elastic[result["PublicIp"]] = self.address(tags)
        return {**result, "PublicIp": self.elastic[result["PublicIp"]]}

    def _describe_addresses(self, call: Call) -> dict[str, Any]:
        result = self._moto(call)
        for row in result["Addresses"]:
            row["PublicIp"] = self.elastic.get(row["PublicIp"], row["PublicIp"])
        return result

    def _describe_interfaces(self, call: Call) -> dict[str, Any]:
        """List interfaces with the addresses, types and tags of their instances, and every card."""
        result = self._moto(call)
        asked = {value for rule in call.parameters.get("Filters", []) for value in rule["Values"]}
        for identity, row in self.instances.items():
            shown = {
                one["NetworkInterfaceId"]: one
                for one in self.describe(identity)["NetworkInterfaces"]
            }
            for found in result["NetworkInterfaces"]:
                if found["NetworkInterfaceId"] in shown:
                    found.pop("Association", None)
                    found.update(shown[found["NetworkInterfaceId"]], TagSet=row.interface_tags)
            if row.cards and shown and (not asked or identity in asked):
                attached = {"InstanceId": identity, "InstanceOwnerId": self.account}
                result["NetworkInterfaces"] += [
                    {
                        **card,
                        "Attachment": {**card["Attachment"], **attached},
                        "TagSet": row.interface_tags,
                    }
                    for card in row.cards
                ]
        return result

    # -- What moto lacks

    def _placement_group(self, name: str) -> dict[str, Any]:
        if name not in self.placement_groups:
            raise Refusal(
                "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."
            )
        return self.placement_groups[name]

    def _create_placement_group(self, call: Call) -> dict[str, Any]:
        name = call.parameters["GroupName"]
        if name in self.placement_groups:
            raise Refusal(
                "InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists."
            )
        identity = f"pg-{secrets.token_hex(8)}"
        arn = f"arn:aws:ec2:{self.region}:{self.account}:placement-group/{name}"
        self.placement_groups[name] = {
            "GroupName": name,
            "GroupId": identity,
            "GroupArn": arn,
            "State": "available",
            "Strategy": call.parameters.get("Strategy", "cluster"),
            "PartitionCount": call.parameters.get("PartitionCount"),
            "SpreadLevel": call.parameters.get("SpreadLevel"),
            "Tags": _tags(call.parameters, "placement-group"),
        }
        return {"PlacementGroup": self.placement_groups[name]}

    def _describe_placement_groups(self, call: Call) -> dict[str, Any]:
        names = call.parameters.get("GroupNames")
        ids = call.parameters.get("GroupIds", [])
        rows = (
            [self._placement_group(name) for name in names]
            if names
            else list(self.placement_groups.values())
        )
        chosen = [row for row in rows if not ids or row["GroupId"] in ids]
        filters = call.parameters.get("Filters", [])
        return {"PlacementGroups": [row for row in chosen if matches(row, filters)]}

    def _delete_placement_group(self, call: Call) -> dict[str, Any]:
        name = call.parameters["GroupName"]
        self._placement_group(name)
        for row in map(self.describe, self.instances):
            if row["Placement"].get("GroupName") == name and row["State"]["Name"] != "terminated":
                raise Refusal(
                    "InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use."
                )
        del self.placement_groups[name]
        return {}

    def _create_capacity_reservation(self, call: Call) -> dict[str, Any]:
        parameters = call.parameters
        identity = f"cr-{secrets.token_hex(8)}"
        self.reservations[identity] = {
            "CapacityReservationId": identity,
            "OwnerId": self.account,
            "InstanceType": parameters["InstanceType"],
            "InstancePlatform": parameters["InstancePlatform"],
            "AvailabilityZone": parameters["AvailabilityZone"],
            "TotalInstanceCount": parameters["InstanceCount"],
            "State": "active",
            "InstanceMatchCriteria": parameters.get("InstanceMatchCriteria", "open"),
            "Tags": _tags(parameters, "capacity-reservation"),
        }
        return {"CapacityReservation": self._with_available(identity)}

    def _with_available(self, identity: str) -> dict[str, Any]:
        row = self.reservations[identity]
        free = row["TotalInstanceCount"] - self._in_reservation(identity)
        return {**row, "AvailableInstanceCount": free}

    def _describe_capacity_reservations(self, call: Call) -> dict[str, Any]:
        ids = call.parameters.get("CapacityReservationIds", list(self.reservations))
        for identity in ids:
            if identity not in self.reservations:
                raise Refusal(
                    "InvalidCapacityReservationId.NotFound", f"'{identity}' does not exist"
                )
        rows = [self._with_available(identity) for identity in ids]
        filters = call.parameters.get("Filters", [])
        return {"CapacityReservations": [row for row in rows if matches(row, filters)]}

    def _cancel_capacity_reservation(self, call: Call) -> dict[str, Any]:
        self.reservations[call.parameters["CapacityReservationId"]]["State"] = "cancelled"
        return {"Return": True}

    def _describe_spot_requests(self, call: Call) -> dict[str, Any]:
        ids = call.parameters.get("SpotInstanceRequestIds")
        rows = [row for key, row in self.spot_requests.items() if not ids or key in ids]
        filters = call.parameters.get("Filters", [])
        return {"SpotInstanceRequests": [row for row in rows if matches(row, filters)]}

    def _cancel_spot_requests(self, call: Call) -> dict[str, Any]:
        for identity in call.parameters["SpotInstanceRequestIds"]:
            self.spot_requests[identity]["State"] = "cancelled"
        return {
            "CancelledSpotInstanceRequests": [
                {"SpotInstanceRequestId": identity, "State": "cancelled"}
                for identity in call.parameters["SpotInstanceRequestIds"]
            ]
        }

    def _describe_images(self, call: Call) -> dict[str, Any]:
        ids = call.parameters.get("ImageIds", [])
        for identity in ids:
            if identity not in self.catalog.images:
                raise Refusal(
                    "InvalidAMIID.NotFound", f"The image id '[{identity}]' does not exist"
                )
        owners = call.parameters.get("Owners", [])
        rows = [
            row for key, row in self.catalog.images.items()
            if (not ids or key in ids)
            and (not owners or {row["OwnerId"], row["ImageOwnerAlias"]} & set(owners))
        ]  # fmt: skip
        filters = call.parameters.get("Filters", [])
        return {"Images": [row for row in rows if matches(row, filters)]}


_HANDLERS: dict[str, Callable[[Ec2, Call], dict[str, Any]]] = {
    "AllocateAddress": Ec2._allocate_address,
    "AttachVolume": Ec2._attach_volume,
    "CancelCapacityReservation": Ec2._cancel_capacity_reservation,
    "CancelSpotInstanceRequests": Ec2._cancel_spot_requests,
    "CreateCapacityReservation": Ec2._create_capacity_reservation,
    "CreateLaunchTemplate": Ec2._create_template,
    "CreateLaunchTemplateVersion": Ec2._create_template_version,
    "CreatePlacementGroup": Ec2._create_placement_group,
    "CreateVolume": Ec2._create_volume,
    "DeletePlacementGroup": Ec2._delete_placement_group,
    "DescribeAddresses": Ec2._describe_addresses,
    "DescribeCapacityReservations": Ec2._describe_capacity_reservations,
    "DescribeImages": Ec2._describe_images,
    "DescribeInstances": Ec2._describe_instances,
    "DescribeNetworkInterfaces": Ec2._describe_interfaces,
    "DescribePlacementGroups": Ec2._describe_placement_groups,
    "DescribeSpotInstanceRequests": Ec2._describe_spot_requests,
    "DetachVolume": Ec2._detach_volume,
    "GetConsoleOutput": Ec2._console,
    "TerminateInstances": Ec2._terminate_instances,
}


def _tags(parameters: Parameters, kind: str) -> list[dict[str, str]]:
    return [
        tag
        for row in parameters.get("TagSpecifications", [])
        if row.get("ResourceType") == kind
        for tag in row["Tags"]
    ]


def _check_interfaces(parameters: Parameters, kind: str) -> None:
    interfaces = parameters.get("NetworkInterfaces", [])
    if interfaces and (parameters.get("SubnetId") or parameters.get("SecurityGroupIds")):
        raise Refusal(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID may not be specified on the same request",
        )
    if len(interfaces) > 1 and any(row.get("AssociatePublicIpAddress") for row in interfaces):
        raise Refusal(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.",
        )
    cards = cat.network_cards(kind)
    for row in interfaces:
        if row.get("NetworkCardIndex", 0) >= cards:
            raise Refusal(
                "InvalidParameterValue",
                f"The instance type {kind} supports {cards} network cards, not index {row['NetworkCardIndex']}",
            )
        if row.get("InterfaceType", "interface").startswith("efa") and not cat.supports_efa(kind):
            raise Refusal(
                "UnsupportedOperation", f"Elastic Fabric Adapter is not supported on {kind}"
            )


def _split_cards(
    interfaces: Iterable[dict[str, Any]],
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    first, others = None, []
    for row in interfaces:
        if first is None and not row.get("DeviceIndex") and not row.get("NetworkCardIndex"):
            first = row
        else:
            others.append(row)
    return first, others


def _card(row: dict[str, Any], instance: dict[str, Any]) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": f"eni-{secrets.token_hex(8)}",
        "InterfaceType": row.get("InterfaceType", "interface"),
        "SubnetId": instance.get("SubnetId"),
        "VpcId": instance.get("VpcId"),
        "Status": "in-use",
        "Groups": [{"GroupId": group} for group in row.get("Groups", [])],
        "Attachment": {
            "AttachmentId": f"eni-attach-{secrets.token_hex(8)}",
            "DeviceIndex": row.get("DeviceIndex", 0),
            "NetworkCardIndex": row.get("NetworkCardIndex", 0),
            "DeleteOnTermination": row.get("DeleteOnTermination", True),
            "Status": "attached",
        },
    }


_LOST_BY_MOTO = (
    "CapacityReservationSpecification",
    "ClientToken",
    "CpuOptions",
    "DryRun",
    "InstanceMarketOptions",
    "MaintenanceOptions",
)


def _for_moto(parameters: Parameters, zone: str) -> Parameters:
    """Return the parameters as moto understands them: it makes `MinCount` instances."""
    result = {key: value for key, value in parameters.items() if key not in _LOST_BY_MOTO}
    result["MinCount"] = result["MaxCount"]
    first, _ = _split_cards(result.get("NetworkInterfaces", []))
    result.pop("NetworkInterfaces", None)
    if first:
        known = {
            key: value
            for key, value in first.items()
            if key not in {"InterfaceType", "NetworkCardIndex", "AssociatePublicIpAddress"}
        }
        result["NetworkInterfaces"] = [known]
    if not result.get("SubnetId") and not (first and "SubnetId" in first):
        result["Placement"] = {"AvailabilityZone": zone}
    else:
        result.pop("Placement", None)
    return result

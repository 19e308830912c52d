"""
Which resources of EC2 a request needs, as programs of stacks.

A fleet has one stack for what its hosts share, and one for each batch of hosts that is created at
once; a volume has its own. Everything is decided before: the image, the type, the zone. A batch
only shrinks, so an entry is never changed: another template means other uids.

The rules hold for every host: the metadata service wants a session token and answers this host
alone (a job in a container cannot read the role of the host), a shutdown terminates, the root disk
is encrypted and goes with its host, and the creating call writes the tags that prove who owns it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import BATCH_MAX
from fleetform.providers.pulumi.engine.program import Program, Resource, output_of, secret
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG
from fleetform.spec.canonical import digest

__all__ = [
    "ADDRESS",
    "ENVIRONMENT_TAG",
    "FLEET_TAG",
    "INTERFACES",
    "OPERATION_TAG",
    "SECURITY_GROUP",
    "SNAPSHOT",
    "SSH_PORT",
    "VOLUME",
    "AwsAccount",
    "Batch",
    "DiskRequest",
    "HostTemplate",
    "NewHost",
    "SharedParts",
    "SharedRequest",
    "address_name",
    "batch_program",
    "host_uid",
    "shared_program",
    "volume_program",
    "whole_program",
]

ENVIRONMENT_TAG = "fleetform:environment"
OPERATION_TAG = "fleetform:operation"
FLEET_TAG = "fleetform:fleet"

SECURITY_GROUP = "security-group"
"""The name of the security group in the stack of shared parts."""

INTERFACES = "interfaces"
"""The name of the launch template with the network interfaces of a batch."""

SSH_PORT = 22

RETRIES_MAX = 3
"""
Of a call that has no capacity: a refusal arrives within 30 s, and the next offer is tried.

The plugin's own default repeats the call for up to 50 minutes.
"""

_PROVIDER = "aws"
_INSTANCE = "aws:ec2/instance:Instance"
_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_GROUP = "aws:ec2/securityGroup:SecurityGroup"
_KEY = "aws:ec2/keyPair:KeyPair"
_PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
VOLUME = "aws:ebs/volume:Volume"
SNAPSHOT = "aws:ebs/snapshot:Snapshot"
ADDRESS = "aws:ec2/eip:Eip"
"""An Elastic IP address, of a host with several network interfaces."""

_ADDRESS_SUFFIX = "-address"

_ALL = {"protocol": "-1", "fromPort": 0, "toPort": 0}


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """
    Where resources are; `id` is pinned, so credentials of another account are refused.

    `plugin_version` is that of the plugin; empty: the newest that is installed. `endpoint` is a
    URL in place of those of AWS, for tests.
    """

    region: str
    id: str
    environment_uid: str
    plugin_version: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class SharedRequest:
    """What the hosts of a fleet share. `vpc`: empty is the default one of the region."""

    uid: str
    fleet: str
    operation_uid: str
    ssh_from: tuple[str, ...]
    public_key: str
    vpc: str = ""
    is_cluster: bool = False


@dataclass(frozen=True, slots=True)
class SharedParts:
    """
    The ids of the shared parts, as their stack has them; `placement_group` may be empty.

    In a preview of what does not exist yet they are outputs of resources of the program.
    """

    security_group: str | Mapping[str, Any]
    key_name: str | Mapping[str, Any]
    placement_group: str | Mapping[str, Any] = ""


@dataclass(frozen=True, slots=True)
class HostTemplate:
    """
    How a host is created; every choice is made.

    `image` is the id of an AMI. `network_cards` and `efa` are how many the type has, and whether
    they are EFA. `reservation` is the
    id of a capacity reservation. `disk` is `type`, `iops` and `throughput` of the root disk, each of which
    may be missing, `tags` are those of the fleet, and `groups` the ids of security groups beside the shared one. `price_max` is for spot, empty: the price on demand.
    """

    instance_type: str
    image: str
    root_gb: int
    subnet: str = ""
    zone: str = ""
    public_address: bool = True
    profile: str = ""
    spot: bool = False
    price_max: str = ""
    reservation: str = ""
    network_cards: int = 1
    efa: bool = False
    disk: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    @property
    def elastic_address(self) -> bool:
        """Whether hosts get an Elastic IP: EC2 gives no public address to an instance with several interfaces."""
        return self.public_address and self.network_cards > 1


@dataclass(frozen=True, slots=True)
class NewHost:
    """A host of a batch. `user_data` is for the first boot, and a secret: it has a host key."""

    uid: str
    name: str
    operation_uid: str
    user_data: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Hosts that are created at once from one template."""

    uid: str
    fleet: str
    template: HostTemplate
    hosts: tuple[NewHost, ...]


@dataclass(frozen=True, slots=True)
class DiskRequest:
    """A new volume; `snapshot` is the id of the snapshot whose data it begins with."""

    uid: str
    name: str
    zone: str
    size_gb: int
    kind: str = "gp3"
    encrypted: bool = True
    snapshot: str = ""


def shared_program(account: AwsAccount, request: SharedRequest) -> Program:
    """
    Return the security group, the key pair and the placement group of a fleet.

    Raises:
        PermanentError: `ssh_from` is empty or open to everyone.
    """
    _require_closed(request.ssh_from)
    # Names of groups and keys belong to the account, where other environments may have a fleet of this name.
    mark = digest({"environment": account.environment_uid, "uid": request.uid})[:8]
    name = f"fleetform-{request.fleet}-{mark}"
    tags = _tags(account, request.uid, request.operation_uid, request.fleet, name)
    ingress = [
        {
            "protocol": "tcp",
            "fromPort": SSH_PORT,
            "toPort": SSH_PORT,
            "cidrBlocks": list(request.ssh_from),
            "description": "SSH from fleetform",
        },
        # EFA needs all traffic inside of the group, in both directions.
        {**_ALL, "self": True, "description": "hosts of the fleet"},
    ]
    egress = [
        {**_ALL, "cidrBlocks": ["0.0.0.0/0"], "description": "everywhere"},
        {**_ALL, "self": True, "description": "hosts of the fleet"},
    ]
    group = {
        "name": name,
        "description": f"Hosts of fleet {request.fleet}",
        "ingress": ingress,
        "egress": egress,
        "tags": tags,
        **_given(vpcId=request.vpc),
    }
    resources = [
        _provider(account),
        _resource(_GROUP, SECURITY_GROUP, group),
        _resource(_KEY, "key", {"keyName": name, "publicKey": request.public_key, "tags": tags}),
    ]
    if request.is_cluster:
        placement = {"name": name, "strategy": "cluster", "tags": tags}
        resources.append(_resource(_PLACEMENT, "placement-group", placement))
    return _program(account, resources)


def batch_program(account: AwsAccount, batch: Batch, shared: SharedParts) -> Program:
    """Return the hosts of a batch, each under its uid."""
    return _program(account, [_provider(account), *_hosts(account, batch, shared)])


def whole_program(account: AwsAccount, batch: Batch, request: SharedRequest) -> Program:
    """Return the hosts of a batch with what they share, for a preview before any of it exists."""
    shared = shared_program(account, request)
    parts = SharedParts(
        output_of(SECURITY_GROUP),
        output_of("key", "keyName"),
        output_of("placement-group") if request.is_cluster else "",
    )
    return _program(account, [*shared.resources, *_hosts(account, batch, parts)])


def _hosts(account: AwsAccount, batch: Batch, shared: SharedParts) -> list[Resource]:
    assert len(batch.hosts) <= BATCH_MAX, f"batch {batch.uid} has {len(batch.hosts)} hosts"
    template = batch.template
    resources = []
    network: dict[str, Any] = {
        **_given(subnetId=template.subnet),
        "vpcSecurityGroupIds": [shared.security_group, *template.groups],
        "associatePublicIpAddress": template.public_address,
    }
    if template.efa or template.network_cards > 1:
        resources.append(_interfaces(account, batch, shared))
        version = output_of(INTERFACES, "latestVersion")
        network = {"launchTemplate": {"id": output_of(INTERFACES), "version": version}}
    common = {**_host(template, shared), **network}
    for host in batch.hosts:
        # Ours last: nothing is found without them.
        tags = {
            **template.tags,
            **_tags(account, host.uid, host.operation_uid, batch.fleet, host.name),
        }
        properties = {
            **common,
            "userData": secret(host.user_data),
            "tags": tags,
            "rootBlockDevice": {**_root_disk(template), "tags": tags},
        }
        # EC2 stops a host to change what only its first boot reads.
        resources.append(_resource(_INSTANCE, host.uid, properties, ignore=("userData",)))
        if template.elastic_address:
            # With several interfaces EC2 wants to know which one.
            interface = output_of(host.uid, "primaryNetworkInterfaceId")
            address = {"domain": "vpc", "networkInterface": interface, "tags": tags}
            resources.append(_resource(ADDRESS, address_name(host.uid), address))
    return resources


def address_name(uid: str) -> str:
    """Return the name of the resource with the Elastic IP of a host."""
    return f"{uid}{_ADDRESS_SUFFIX}"


def host_uid(name: str) -> str:
    """Return the uid of the host that a resource of a batch belongs to."""
    return name.removesuffix(_ADDRESS_SUFFIX)


def volume_program(account: AwsAccount, disk: DiskRequest) -> Program:
    """Return a volume, which is protected: the engine refuses to delete or to replace it."""
    properties = {
        "availabilityZone": disk.zone,
        "size": disk.size_gb,
        "type": disk.kind,
        "encrypted": disk.encrypted,
        # The first change of a volume is its creation, under its uid.
        "tags": _tags(account, disk.uid, disk.uid, "", disk.name),
        **_given(snapshotId=disk.snapshot),
    }
    volume = Resource(VOLUME, disk.uid, properties, provider=_PROVIDER, protect=True)
    return _program(account, [_provider(account), volume])


# -- parts ----------------------------------------------------------------------------------------


def _host(template: HostTemplate, shared: SharedParts) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "ami": template.image,
        "instanceType": template.instance_type,
        "keyName": shared.key_name,
        "instanceInitiatedShutdownBehavior": "terminate",
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": 1,
        },
        **_given(
            availabilityZone=template.zone,
            iamInstanceProfile=template.profile,
            placementGroup=shared.placement_group,
        ),
    }
    if template.spot:
        options = {
            "spotInstanceType": "one-time",
            "instanceInterruptionBehavior": "terminate",
            **_given(maxPrice=template.price_max),
        }
        properties["instanceMarketOptions"] = {"marketType": "spot", "spotOptions": options}
    if template.reservation:
        target = {"capacityReservationId": template.reservation}
        properties["capacityReservationSpecification"] = {"capacityReservationTarget": target}
    return properties


def _root_disk(template: HostTemplate) -> dict[str, Any]:
    return {
        "volumeSize": template.root_gb,
        "volumeType": template.disk.get("type", "gp3"),
        "encrypted": True,
        "deleteOnTermination": True,
        **{name: template.disk[name] for name in ("iops", "throughput") if name in template.disk},
    }


def _interfaces(account: AwsAccount, batch: Batch, shared: SharedParts) -> Resource:
    """One interface for each network card; only a launch template can say the card."""
    template = batch.template
    interfaces = [
        {
            "deviceIndex": 0 if card == 0 else 1,
            "networkCardIndex": card,
            "securityGroups": [shared.security_group, *template.groups],
            "deleteOnTermination": "true",
            **_given(subnetId=template.subnet),
            **({"interfaceType": "efa"} if template.efa else {}),
            # With several interfaces EC2 refuses to give one of them a public address.
            **(
                {"associatePublicIpAddress": str(template.public_address).lower()}
                if template.network_cards == 1
                else {}
            ),
        }
        for card in range(template.network_cards)
    ]
    operation_uid = batch.hosts[0].operation_uid if batch.hosts else ""
    tags = _tags(account, batch.uid, operation_uid, batch.fleet, f"fleetform-{batch.uid[:8]}")
    properties = {"networkInterfaces": interfaces, "tags": tags}
    return _resource(_TEMPLATE, INTERFACES, properties)


def _provider(account: AwsAccount) -> Resource:
    properties: dict[str, Any] = {
        "region": account.region,
        "allowedAccountIds": [account.id],
        "maxRetries": RETRIES_MAX,
    }
    if account.endpoint:
        services = dict.fromkeys(("ec2", "sts", "iam", "ssm"), account.endpoint)
        properties["endpoints"] = [services]
    return Resource(f"pulumi:providers:{_PROVIDER}", _PROVIDER, properties)


def _resource(
    kind: str, name: str, properties: Mapping[str, Any], *, ignore: tuple[str, ...] = ()
) -> Resource:
    return Resource(kind, name, properties, provider=_PROVIDER, ignore=ignore)


def _program(account: AwsAccount, resources: Sequence[Resource]) -> Program:
    return Program(tuple(resources), _given(aws=account.plugin_version))


def _tags(
    account: AwsAccount, uid: str, operation_uid: str, fleet: str, name: str
) -> dict[str, str]:
    return {
        "Name": name,
        ENVIRONMENT_TAG: account.environment_uid,
        IDENTITY_TAG: uid,
        OPERATION_TAG: operation_uid,
        **({FLEET_TAG: fleet} if fleet else {}),
    }


def _given(**values: str | Mapping[str, Any]) -> dict[str, Any]:
    """Keep what is not empty."""
    return {name: value for name, value in values.items() if value}


def _require_closed(ssh_from: Sequence[str]) -> None:
    advice = "set `ssh_from` to the addresses that fleetform connects from, such as 203.0.113.7/32"
    if not ssh_from:
        raise PermanentError("the fleet does not say from where SSH is allowed", advice=advice)
    for network in ssh_from:
        if ipaddress.ip_network(network, strict=False).prefixlen == 0:
            raise PermanentError(f"`ssh_from: {network}` opens SSH to everyone", advice=advice)

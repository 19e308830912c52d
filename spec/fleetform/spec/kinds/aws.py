"""
Hosts and disks on AWS: the account, the network and the image with which a fleet creates its instances.

Nothing here has a default that could let others in or spend in another account: who may connect, and
whose account it is, is always declared.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from fleetform.spec.bounds import ROOT_DISK_GB
from fleetform.spec.field_facts import OnChange, control, of_hosts, unit
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Flag, Model, Whole, contradiction, listed, refuse
from fleetform.spec.kinds.hosts import Jump
from fleetform.spec.kinds.offers import Offable, Text
from fleetform.spec.names import EXPRESSION_MARK
from fleetform.spec.quantities import format_bytes
from fleetform.spec.quantities.ranges import shown


def _range(value: str) -> str:
    try:
        network = ipaddress.ip_network(value)
    except ValueError:
        raise refuse(
            "bad-value",
            f"{shown(value)} is not a range of addresses.",
            "Write for example `203.0.113.0/24`, or `203.0.113.7/32` for one address.",
        ) from None
    if network.version != 4:
        raise refuse(
            "bad-value",
            f"{shown(value)} is of IPv6; hosts on AWS are reached over IPv4.",
            "Write for example `203.0.113.0/24`.",
        )
    advice = "Write the addresses from which this machine connects, such as `203.0.113.7/32`."
    if network.prefixlen == 0:
        raise refuse("bad-value", f"{shown(value)} is every address of the internet.", advice)
    if network.prefixlen < _PREFIX_MIN:
        raise refuse(
            "bad-value",
            f"{shown(value)} is {network.num_addresses} addresses; the largest range is a `/{_PREFIX_MIN}`.",
            advice,
        )
    if network.is_loopback or network.is_link_local or network.is_multicast or network.is_reserved:
        raise refuse(
            "bad-value", f"No connection to AWS comes from an address of {shown(value)}.", advice
        )
    return str(network)


_PREFIX_MIN = 8
"""No private network is larger, and two halves of the internet would be all of it."""

_Range = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_range)]


def _once(what: str) -> AfterValidator:
    """No entry twice, in the order in which they are declared: EC2 refuses an entry that is there twice."""

    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        for number, one in enumerate(values):
            if one in values[:number]:
                raise refuse(
                    "said-twice", f"The {what} {shown(one)} is named twice.", "Remove one."
                )
        return values

    return AfterValidator(check)


_ACCOUNT_DIGITS = 12


def _account(value: Any) -> str:
    """Read the number of an account, which is text: as a number it would lose the zeros that it begins with."""
    if isinstance(value, int) and not isinstance(value, bool):
        digits = str(value).zfill(_ACCOUNT_DIGITS) if 0 <= value < 10**_ACCOUNT_DIGITS else ""
        raise refuse(
            # The advice is what the warning of a zero in front would say, which this code replaces.
            "number-rewritten" if digits.startswith("0") else "wrong-type",
            f"{shown(value)} is a number here, and an account is a text of 12 digits.",
            f'Quote it: `account: "{digits or "123456789012"}"`.',
        )
    if not isinstance(value, str) or not re.fullmatch(f"[0-9]{{{_ACCOUNT_DIGITS}}}", value):
        raise refuse(
            "bad-value",
            f"{shown(value)} is not the number of an AWS account, which has 12 digits.",
            'Write it in quotes, such as `"123456789012"`; `aws sts get-caller-identity` shows it.',
        )
    return value


_Account = Annotated[
    str,
    BeforeValidator(_account),
    WithJsonSchema({"type": "string", "pattern": f"^[0-9]{{{_ACCOUNT_DIGITS}}}$"}),
]


def _id(prefix: str, noun: str) -> tuple[Any, ...]:
    """Read an id that AWS gives, such as `vpc-0f1e2d3c`."""
    pattern = rf"{prefix}-[0-9a-f]{{8,17}}"

    def read(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise refuse(
                "bad-value",
                f"{shown(value)} is not the id of {noun}.",
                f"Write the id that AWS shows, such as `{prefix}-0f1e2d3c4b5a69788`.",
            )
        return value

    return AfterValidator(read), WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


def id_problems(field: str, value: str | None, prefix: str, noun: str) -> Iterator[Problem]:
    """A field of many backends that has no id of this kind, as it must on AWS."""
    if value is None or EXPRESSION_MARK in value:
        return
    if not re.fullmatch(rf"{prefix}-[0-9a-f]{{8,17}}", value):
        yield Problem(
            "bad-value",
            (field,),
            f"{shown(value)} is not the id of {noun} on AWS.",
            f"Write the id that AWS shows, such as `{prefix}-0f1e2d3c4b5a69788`.",
        )


_IMAGE = re.compile(r"ami-[0-9a-f]{8,17}|(?:/[A-Za-z0-9_.-]{1,100}){1,15}")


def _image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        raise refuse(
            "bad-value",
            f"{shown(value)} is neither the id of an image nor the name of a parameter.",
            "Write for example `ami-0f1e2d3c4b5a69788`, or `/vision/image`.",
        )
    return value


_PROFILE = re.compile(r"[A-Za-z0-9_+=,.@-]{1,128}")


def _profile(value: str) -> str:
    if value.startswith("arn:"):
        name = value.rpartition("/")[2]
        raise refuse(
            "bad-value",
            f"{shown(value)} is an ARN, and the profile is named here.",
            f"Write `{name}`." if _PROFILE.fullmatch(name) else "Write the name of the profile.",
        )
    if not _PROFILE.fullmatch(value):
        raise refuse(
            "bad-value",
            f"{shown(value)} cannot be the name of an IAM instance profile.",
            "Use up to 128 letters, digits and `_+=,.@-`.",
        )
    return value


ORPHAN_SECONDS_MIN = 3600


class _DiskLimits(NamedTuple):
    """What EBS has at least and at most of one disk of a type; 0: a document cannot set it."""

    least_bytes: int
    most_bytes: int
    iops_min: int = 0
    iops: int = 0
    iops_per_gb: int = 0
    throughput: int = 0

    def iops_of(self, size_bytes: int) -> int:
        """Return how many a disk of that size has at most; up to `iops_min` every size has."""
        return max(self.iops_min, self.iops_per_gb * -(-size_bytes // _GIB))


_GIB, _TIB = 1 << 30, 1 << 40

# docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html, with the larger gp3 of September 2025.
_DISK_LIMITS = {
    "gp3": _DiskLimits(_GIB, 64 * _TIB, 3_000, 80_000, 500, 2_000),
    "gp2": _DiskLimits(_GIB, 16 * _TIB),
    "io2": _DiskLimits(4 * _GIB, 64 * _TIB, 100, 256_000, 1_000),
    "io1": _DiskLimits(4 * _GIB, 16 * _TIB, 100, 64_000, 50),
}

_IOPS_PER_THROUGHPUT = 4
"""Of `gp3`: a quarter of a MiB per second for each operation per second. There are `iops_min` by default."""


def disk_size_problems(
    size_bytes: int | None, path: tuple[str, ...], disk: RootDisk | None = None
) -> Iterator[Problem]:
    """A disk that is smaller or larger than any of its type on AWS, or too small for its `iops`."""
    if size_bytes is None:
        return
    type_ = (disk and disk.type) or "gp3"
    limits = _DISK_LIMITS[type_]
    iops = (disk and disk.iops) or 0
    if size_bytes < limits.least_bytes:
        least = format_bytes(limits.least_bytes)
        yield Problem(
            "bad-value",
            path,
            f"A disk of type `{type_}` has {least} at least on AWS.",
            f"Write {least} or more.",
        )
    elif size_bytes > limits.most_bytes:
        most = format_bytes(limits.most_bytes)
        yield Problem(
            "bad-value",
            path,
            f"A disk of type `{type_}` has {most} at most on AWS.",
            f"Write {most} or less.",
        )
    elif iops > limits.iops_of(size_bytes):
        least = format_bytes(-(-iops // limits.iops_per_gb) * _GIB)
        yield Problem(
            "contradiction",
            path,
            f"A disk of type `{type_}` has {limits.iops_per_gb} iops at most per GB, and `iops` is {iops}.",
            f"Write {least} or more, or fewer `iops`.",
        )


def default_disk_problems(disk: RootDisk | None) -> Iterator[Problem]:
    """A disk without a declared size that is too small for its `iops`."""
    iops, type_ = (disk and disk.iops) or 0, (disk and disk.type) or "gp3"
    limits = _DISK_LIMITS[type_]
    if not limits.iops_of(ROOT_DISK_GB * _GIB) < iops <= limits.iops:
        return
    least = format_bytes(-(-iops // limits.iops_per_gb) * _GIB)
    yield contradiction(
        ("aws", "root_disk", "iops"),
        f"A disk has {ROOT_DISK_GB}GB without `resources.disk`, and one of type `{type_}` has {limits.iops_per_gb} iops at most per GB.",
        f"Write `resources: {{disk: {least}..}}`, or fewer `iops`.",
        for_lack_of=("resources",),
    )


class RootDisk(Model):
    """The disk with the operating system of an instance."""

    type: Literal["gp3", "gp2", "io2", "io1"] | None = None
    """
    The type of the EBS volume. `gp3`: an SSD whose speed does not depend on its size. `gp2`: an SSD that
    is faster the larger it is. `io2`: an SSD with the `iops` that you set, which fails less often than
    `io1`. `io1`: the older one with `iops` that you set. Default: `gp3`. Example: `io2`.
    """

    iops: Annotated[Whole, Field(ge=100)] | None = None
    """Operations per second; `io1` and `io2` need it, and `gp2` has none. Example: `6000`."""

    throughput: Annotated[Whole, Field(ge=125)] | None = None
    """Throughput in MiB per second; only `gp3` has it. Example: `500`."""

    def problems(self) -> Iterator[Problem]:
        """What does not go with the type."""
        type_ = self.type or "gp3"
        if type_ in {"io1", "io2"} and self.iops is None:
            yield contradiction(
                "type", f"A disk of type `{type_}` needs `iops`.", "Add `iops: 3000`."
            )
        if type_ == "gp2" and self.iops is not None:
            yield contradiction("iops", "A disk of type `gp2` has no `iops`.", "Remove it.")
        if type_ != "gp3" and self.throughput is not None:
            yield contradiction("throughput", "Only `gp3` has `throughput`.", "Remove it.")
        limits = _DISK_LIMITS[type_]
        for name, said, most in (
            ("iops", self.iops, limits.iops),
            ("throughput", self.throughput, limits.throughput),
        ):
            if said is not None and 0 < most < said:
                yield Problem(
                    "bad-value",
                    (name,),
                    f"A disk of type `{type_}` has {most} {name} at most.",
                    f"Write {most} or less.",
                )
        if self.iops is not None and self.iops < limits.iops_min:
            yield Problem(
                "bad-value",
                ("iops",),
                f"A disk of type `{type_}` has {limits.iops_min} iops at least.",
                f"Write {limits.iops_min} or more.",
            )
        throughput = self.throughput or 0
        needed = throughput * _IOPS_PER_THROUGHPUT
        is_slow = needed > max(self.iops or 0, limits.iops_min)
        if type_ == "gp3" and is_slow and throughput <= limits.throughput:
            yield contradiction(
                "throughput",
                f"A throughput of {self.throughput} needs {needed} iops, {_IOPS_PER_THROUGHPUT} for each MiB per second.",
                f"Add `iops: {needed}`, or write a lower throughput.",
            )


class AwsHosts(Model):
    """The instances of a fleet on AWS."""

    account: _Account
    """
    The number of the account. Credentials of another account are refused. Example:
    `"123456789012"`.
    """

    ssh_from: Annotated[
        tuple[_Range, ...],
        Field(min_length=1),
        *listed(_Range),
        _once("range of addresses"),
        control("providers.aws"),
    ]
    """
    The addresses from which SSH connections are accepted, in CIDR notation. Example:
    `[203.0.113.7/32]`.
    """

    image: (
        Annotated[
            str,
            AfterValidator(_image),
            WithJsonSchema({"type": "string", "pattern": f"^(?:{_IMAGE.pattern})$"}),
        ]
        | None
    ) = None
    """
    The machine image: its id, or the name of a public or own parameter of Systems Manager that has the
    id. A fleet keeps the id that a parameter had when its first instance was created. Default: the
    Deep Learning Base image of AWS with the driver of NVIDIA for types with GPUs, else Ubuntu 24.04.
    Example: `ami-0f1e2d3c4b5a69788`.
    """

    image_renewal: Whole | None = None
    """
    Another number takes the newest image of the parameter, and replaces the instances by ones that
    boot from it. Default: 0. Example: `1`.
    """

    vpc: Annotated[str, *_id("vpc", "a VPC")] | None = None
    """The id of the VPC. Default: the default VPC of the region. Example: `vpc-0f1e2d3c`."""

    subnet: Annotated[str, *_id("subnet", "a subnet")] | None = None
    """
    The id of the subnet, which must be in the VPC. Default: a default subnet of the region.
    Example: `subnet-0f1e2d3c`.
    """

    security_groups: (
        Annotated[
            tuple[Annotated[str, *_id("sg", "a security group")], ...],
            *listed(str),
            _once("security group"),
        ]
        | None
    ) = None
    """
    The ids of further security groups of the instances, such as one from which a file system accepts
    connections. Default: none beside the group that fleetform creates. Example: `[sg-0f1e2d3c]`.
    """

    public_ips: Flag | None = None
    """
    Whether instances have public addresses. Default: `true`. Example: `false`.
    """

    proxy_jump: Annotated[Jump | None, control("providers.aws")] = None
    """
    The jump host through which instances are reached, such as one in their VPC. Default: none.
    Example: `ubuntu@jump.example.com`.
    """

    host_key: Annotated[
        Literal["user-data", "console"] | None, of_hosts("providers.aws", OnChange.NEW_HOSTS)
    ] = None
    """
    How the first connection recognises an instance. `user-data`: by a host key that its user data gives
    it. `console`: by the host key that it prints on its console when it boots, which EC2 shows some
    minutes later. Default: `user-data`. Example: `console`.
    """

    root_disk: RootDisk | None = None
    """
    The disk with the operating system. `resources.disk` of the fleet sets its size. Example: `{type:
    gp3, throughput: 500}`.
    """

    iam_instance_profile: Annotated[Text, AfterValidator(_profile)] | None = None
    """The name of the IAM instance profile of the instances. Example: `training`."""

    orphan_after: Annotated[Offable, unit("seconds")] | None = None
    """
    How long an instance without jobs runs when no controller reaches it: then it shuts down, which
    terminates it. `off`: it runs on. Default: `24h`. Example: `2d`, `off`.
    """

    def problems(self) -> Iterator[Problem]:
        """What does not go together."""
        if self.orphan_after is not None and 0 <= self.orphan_after < ORPHAN_SECONDS_MIN:
            yield Problem(
                "bad-value",
                ("orphan_after",),
                "Less than an hour would end hosts while a controller restarts.",
                "Write `1h` or more, or `off`.",
            )
        for problem in self.root_disk.problems() if self.root_disk else ():
            yield problem.below("root_disk")
        if self.image_renewal is not None and (self.image or "").startswith("ami-"):
            yield contradiction(
                "image_renewal",
                "The id of an image names one image for ever.",
                "Remove `image_renewal`, and write another id for another image.",
            )


class AwsDisk(Model):
    """The disk of a volume on AWS, an EBS volume, or a shared file system."""

    account: _Account
    """
    The number of the account. Credentials of another account are refused. Example:
    `"123456789012"`.
    """

    file_system: Literal["efs", "lustre"] | None = None
    """
    The kind of the shared file system that `volume_id` names; several hosts mount it at once. `efs`: Elastic
    File System. `lustre`: FSx for Lustre. Default: none, the volume is a disk. Example: `efs`.
    """

    encrypted: Flag | None = None
    """Whether a new disk is encrypted. Default: `true`. Example: `false`."""

    snapshot_id: Annotated[str, *_id("snap", "a snapshot")] | None = None
    """
    The snapshot whose data a new disk begins with. Default: it is empty. Example:
    `snap-0f1e2d3c4b5a69788`.
    """

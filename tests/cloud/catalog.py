"""What an account may buy in the tests: images and their parameters, instance types, quotas, zones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

ACCOUNT = "123456789012"

_DLAMI = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
)
_UBUNTU = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"
_ARM = "/aws/service/canonical/ubuntu/server/22.04/stable/current/arm64/hvm/ebs-gp2/ami-id"
NVIDIA = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
"""The parameter of the image with a driver; the names are those of AWS."""
UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"

ON_DEMAND_QUOTAS = {
    "P": "L-417A185B",
    "G": "L-DB2E81BA",
    "DL": "L-6E869C2A",
    "Inf": "L-1945791B",
    "Trn": "L-2C3B7624",
    "Standard": "L-1216C47A",
}
SPOT_QUOTAS = {
    "P": "L-7212CCBC",
    "P5": "L-C4BD4855",
    "G": "L-3819A6DF",
    "Inf": "L-B5D1601B",
    "Trn": "L-6B0D517C",
    "Standard": "L-34B43A08",
}
"""Codes of the quotas of vCPUs; spot has its own, and a P5 on spot another one than P2 to P4."""


@dataclass
class Catalog:
    """What the account may do; a test changes it as another person would."""

    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    vcpus: dict[str, int] = field(default_factory=dict)
    """Limit by the code of its quota; a quota that is not here has `VCPUS`."""
    prices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Dollars an hour on demand, by region and type."""
    spot_prices: dict[str, str] = field(default_factory=dict)
    """Dollars an hour by type."""
    file_systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Those of EFS and FSx by id, as `DescribeFileSystems` of their service shows them."""
    spot_role: bool = True
    """False: the account lacks the service-linked role of spot, and may not make it."""

    def __post_init__(self) -> None:
        for name, parameter, architecture in (
            ("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)", _DLAMI, "x86_64"),
            ("ubuntu-jammy-22.04-amd64-server", _UBUNTU, "x86_64"),
            ("ubuntu-jammy-22.04-arm64-server", _ARM, "arm64"),
            ("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04)", NVIDIA, "x86_64"),
            ("ubuntu-noble-24.04-amd64-server", UBUNTU, "x86_64"),
        ):
            self.publish_image(name, parameter, architecture)

    def publish_image(self, name: str, parameter: str = "", architecture: str = "x86_64") -> str:
        """Add an image, which becomes the value of the parameter; return its id."""
        number = len(self.images) + 1
        image = f"ami-{number:017x}"
        self.images[image] = {
            "ImageId": image,
            "Name": name,
            "Architecture": architecture,
            "CreationDate": f"2026-01-{number:02d}T00:00:00.000Z",
            "OwnerId": "099720109477",
            "ImageOwnerAlias": "amazon",
            "Public": True,
            "State": "available",
            "ImageType": "machine",
            "Hypervisor": "xen",
            "EnaSupport": True,
            "VirtualizationType": "hvm",
            "RootDeviceType": "ebs",
            "RootDeviceName": "/dev/sda1",
            "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8}}],
        }
        if parameter:
            self.parameters[parameter] = image
        return image

    def quota(self, instance_type: str, *, spot: bool) -> tuple[str, int]:
        """Return the code and the limit of the quota that an instance counts for."""
        code = quota_code(instance_type, spot=spot)
        return code, self.vcpus.get(code, VCPUS)


ADDRESS_QUOTA = "L-0263D0A3"
"""The quota of Elastic IP addresses; `vcpus` of a catalog has its limit."""

VCPUS = 1_000_000
"""More than any test buys: a test that wants to meet a quota sets it."""


def quota_code(instance_type: str, *, spot: bool) -> str:
    family = instance_type.partition(".")[0].lower()
    table = SPOT_QUOTAS if spot else ON_DEMAND_QUOTAS
    if spot and family.startswith("p5"):
        return table["P5"]
    for prefix in ("inf", "trn", "dl", "vt", "g", "p"):
        if family.startswith(prefix):
            name = {"vt": "G", "g": "G", "p": "P"}.get(prefix, prefix.capitalize())
            return table.get("DL" if prefix == "dl" else name, table["Standard"])
    return table["Standard"]


def vcpus(instance_type: str) -> int:
    return int(instance_types()[instance_type]["VCpuInfo"]["DefaultVCpus"])


def network_cards(instance_type: str) -> int:
    return int(instance_types()[instance_type]["NetworkInfo"].get("MaximumNetworkCards", 1))


def supports_efa(instance_type: str) -> bool:
    return bool(instance_types()[instance_type]["NetworkInfo"].get("EfaSupported"))


def instance_types() -> dict[str, Any]:
    return INSTANCE_TYPES


@cache
def zones_with(region: str, instance_type: str) -> tuple[str, ...]:
    """Return the zones of a region that offer a type, in order."""
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return tuple(sorted(row["Location"] for row in offered if row["InstanceType"] == instance_type))


def region_exists(region: str) -> bool:
    return region in INSTANCE_TYPE_OFFERINGS["region"]

"""
The regions and instance types of clouds, as this release knows them.

A cloud adds names at any time, so an unknown name may be right: a check of documents warns of it.
"""

from __future__ import annotations

import functools
from pathlib import Path

__all__ = ["REGIONS", "catalogue_file", "catalogue_lines", "instance_types", "is_burstable"]

REGIONS = {
    "aws": (
        "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
        "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
        "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "eu-central-1", "eu-central-2", "eu-north-1",
        "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1",
        "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
    ),
}  # fmt: skip
"""All regions of each cloud, also those that its catalogue has no prices of."""


def catalogue_file(cloud: str) -> Path:
    """Return the file with the catalogue of a cloud, which has one row for each offer; `providers.offers` reads it."""
    return Path(__file__).with_name(f"{cloud}.csv")


def catalogue_lines(cloud: str) -> list[str]:
    """Return the lines of the catalogue of a cloud; the first one has the names of the columns."""
    return catalogue_file(cloud).read_text(encoding="utf-8").splitlines()


@functools.cache
def instance_types(cloud: str) -> frozenset[str]:
    """Return the names of all types in the catalogue of a cloud; they are its first column."""
    return frozenset(line.partition(",")[0] for line in catalogue_lines(cloud)[1:])


_BURSTABLE = frozenset({"t2", "t3", "t3a", "t4g"})


def is_burstable(instance_type: str) -> bool:
    """
    Tell whether AWS gives a type only a share of its CPUs for long, such as `t3.large`: it has none of them in cluster placement groups.

    docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html
    """
    return instance_type.partition(".")[0] in _BURSTABLE

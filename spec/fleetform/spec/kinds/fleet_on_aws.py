"""What a fleet whose hosts come from AWS may declare together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.spec.clouds.names import is_burstable
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.aws import default_disk_problems, disk_size_problems, id_problems
from fleetform.spec.kinds.base import contradiction
from fleetform.spec.kinds.cloud_names import not_a_zone
from fleetform.spec.kinds.run_policies import host_retry_problems
from fleetform.spec.names import is_zone, region_of
from fleetform.spec.quantities.ranges import shown

if TYPE_CHECKING:
    from fleetform.spec.kinds.fleet import Fleet


_INSTANCE_TAGS = 50
"""docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html"""

TAGS_MAX = 45
"""Of a fleet: its instances also have those that fleetform finds them by."""


def fleet_on_aws_problems(fleet: Fleet) -> Iterator[Problem]:
    """What does not go together in a fleet whose hosts come from AWS."""
    if fleet.regions is None:
        yield Problem(
            "missing-field",
            ("aws",),
            "Hosts on AWS have `regions`, which is missing.",
            "Add `regions: [us-east-1]`.",
            at_key=True,
        )
    assert fleet.aws is not None, "the source of the hosts"
    yield from (problem.below("aws") for problem in fleet.aws.problems())
    if fleet.run_as is None:
        yield Problem(
            "missing-field",
            ("aws",),
            "Jobs run as the account of the person who applied them, and the images of AWS have no accounts of persons.",
            "Write `run_as: root`, or `run_as: owner` if the image has the accounts.",
            level=Level.WARNING,
            at_key=True,
            for_lack_of=("run_as",),
        )
    least = (
        None
        if fleet.resources is None or fleet.resources.disk is None
        else fleet.resources.disk.min
    )
    if least is None:
        yield from default_disk_problems(fleet.aws.root_disk)
    else:
        yield from disk_size_problems(least, ("resources", "disk"), fleet.aws.root_disk)
    yield from _place_problems(fleet)
    if fleet.retry is not None:
        yield from host_retry_problems(fleet.retry)
    # `0..0` takes all hosts for a while, and the rest of the document stays for when they are back.
    if fleet.idle_duration is not None and (
        fleet.nodes is None or fleet.nodes.min == fleet.nodes.max != 0
    ):
        yield Problem(
            "contradiction",
            ("idle_duration",),
            "No host is released for it: the number of hosts is fixed.",
            "Write a range, such as `nodes: 0..2`, or remove `idle_duration`.",
            level=Level.WARNING,
            at_key=True,
            for_lack_of=("nodes",),
        )
    if "Name" in (fleet.tags or {}):
        yield contradiction(
            "tags", "The tag `Name` of an instance is the name of the host.", "Remove it."
        )
    if (count := len(fleet.tags or {})) > TAGS_MAX:
        yield Problem(
            "bad-value",
            ("tags",),
            f"An instance on AWS has {_INSTANCE_TAGS} tags at most, of which fleetform sets {_INSTANCE_TAGS - TAGS_MAX}, and"
            f" `tags` has {count}.",
            f"Write {TAGS_MAX} or fewer.",
        )
    yield from _reservation_problems(fleet)
    yield from _cluster_problems(fleet)
    if others := [name for name in fleet.backends or () if name != "aws"]:
        yield contradiction(
            "backends",
            f"The hosts of this fleet are on AWS, and `backends` names `{others[0]}`.",
            "Remove one of the two.",
        )


def _place_problems(fleet: Fleet) -> Iterator[Problem]:
    """Zones outside of the regions, and what exists in one place only although several may be used."""
    assert fleet.aws is not None, "the source of the hosts"
    regions, zones = fleet.regions or (), fleet.availability_zones or ()
    for zone in zones:
        if not is_zone(zone) and region_of(zone):
            yield not_a_zone("availability_zones", zone)
        elif regions and region_of(zone) not in regions:
            yield contradiction(
                "availability_zones",
                f"{shown(zone)} is in none of the `regions`.",
                "Add its region, or remove the zone.",
            )
    is_one_image = (fleet.aws.image or "").startswith("ami-")
    for name, places, count, is_given in (
        ("image", "region", len(regions), is_one_image),
        ("vpc", "region", len(regions), fleet.aws.vpc is not None),
        ("subnet", "region", len(regions), fleet.aws.subnet is not None),
        ("subnet", "zone", len(zones), fleet.aws.subnet is not None),
    ):
        if is_given and count > 1:
            yield contradiction(
                ("aws", name),
                f"The id is of one {places}, and hosts may come from {count}.",
                f"Remove it, or write one {places}.",
            )


def _cluster_problems(fleet: Fleet) -> Iterator[Problem]:
    """Types that AWS has in no cluster placement group."""
    for one in fleet.instance_types or () if fleet.placement == "cluster" else ():
        if is_burstable(one):
            yield replace(
                contradiction(
                    "instance_types",
                    f"`{one}` is a burstable type, and AWS has none of these in a cluster placement group.",
                    "Write another type, or remove `placement: cluster`.",
                ),
                at_key=False,
                word=one,
            )


def _reservation_problems(fleet: Fleet) -> Iterator[Problem]:
    """A reservation is of one type in one zone, and holds no spot capacity."""
    if fleet.reservation is None:
        return
    yield from id_problems("reservation", fleet.reservation, "cr", "a capacity reservation")
    for name in ("availability_zones", "instance_types"):
        if len(getattr(fleet, name) or ()) != 1:
            yield contradiction(
                "reservation",
                "A capacity reservation is of one instance type in one zone.",
                f"Write the one of the reservation in `{name}`.",
                for_lack_of=() if getattr(fleet, name) else (name,),
            )
    if fleet.spot_policy not in {None, "on-demand"}:
        yield contradiction(
            "reservation",
            "Spot instances use no capacity reservation.",
            "Remove one of `reservation` and `spot_policy`.",
        )

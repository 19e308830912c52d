"""Short names and round sizes find the cards that drivers report."""

from __future__ import annotations

import pytest

from fleetform.model.instance import Gpu
from fleetform.model.run import GpuRequirement, requirement
from fleetform.schedule.demand import Shape, Take, gpu_matches, measure

MIB = 1 << 20
GB = 1 << 30

NAMES = [
    ("A100", "NVIDIA A100-SXM4-80GB", True),
    ("a100", "NVIDIA A100-PCIE-40GB", True),
    ("A100-SXM4", "NVIDIA A100-SXM4-80GB", True),
    ("H100", "NVIDIA H100 80GB HBM3", True),
    ("H100", "NVIDIA H200", False),
    ("T4", "Tesla T4", True),
    ("RTX4090", "NVIDIA GeForce RTX 4090", True),
    ("RTX 4090", "NVIDIA GeForce RTX 4090", True),
    ("RTX409", "NVIDIA GeForce RTX 4090", False),
    ("L4", "NVIDIA L40S", False),
    ("L40", "NVIDIA L40S", False),
    ("A10", "NVIDIA A100-SXM4-80GB", False),
    ("MI300X", "AMD Instinct MI300X OAM", True),
    ("RTX6000Ada", "NVIDIA RTX 6000 Ada Generation", True),
    ("-", "NVIDIA H200", False),
]


@pytest.mark.parametrize(("asked", "reported", "expected"), NAMES)
def test_names(asked: str, reported: str, expected: bool):
    """A short name means a model, whole words only, whatever the vendor writes around it."""
    assert gpu_matches(GpuRequirement(1, names=(asked,)), Gpu("u", reported, 80 * GB)) is expected


SIZES = [
    (16, None, 15360, True),  # T4
    (24, 24, 23034, True),  # L4
    (80, 80, 81559, True),  # H100
    (141, 141, 143771, True),  # H200
    (80, None, 40960, False),
    (24, None, 20475, False),  # RTX 4000 Ada, 20 GB
    (None, 24, 40960, False),
    (None, 24, 15360, True),
]


@pytest.mark.parametrize(("smallest", "largest", "mib", "expected"), SIZES)
def test_memory(smallest: int | None, largest: int | None, mib: int, expected: bool):
    """A card is taken for its nominal size, and for no other card's."""
    requirement = GpuRequirement(
        1,
        memory_min_bytes=None if smallest is None else smallest * GB,
        memory_max_bytes=None if largest is None else largest * GB,
    )
    assert gpu_matches(requirement, Gpu("u", "card", mib * MIB)) is expected


@pytest.mark.parametrize(("asked", "expected"), [("", True), ("NVIDIA", True), ("amd", False)])
def test_vendor(asked: str, expected: bool):
    """The vendor narrows the choice where it is said."""
    assert gpu_matches(GpuRequirement(1, vendor=asked), Gpu("u", "T4", GB)) is expected


@pytest.mark.parametrize("sharing", ["exact", "whole"])
def test_gpus_without_a_number_are_one_or_more(sharing: str):
    """A host of eight satisfies `gpu: A100`; where it is shared, the run gets one of them."""
    asked = requirement({"cpu": {"min": 1000}, "gpu": {"name": ["A100"]}})
    gpus = (("nvidia", "A100", 80 * GB),) * 8
    take = measure(asked, Shape(sharing, 1, 96_000, 1152 * GB, 1000 * GB, gpus))
    assert isinstance(take, Take)
    assert take.gpu_count == {"exact": 1, "whole": 8}[sharing]

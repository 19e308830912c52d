"""What a job takes under each way of sharing."""

from __future__ import annotations

import pytest

from fleetform.model.run import GpuRequirement, Requirement
from fleetform.schedule.demand import Lack, Take, measure, shape_of
from unit.schedule.cases import GB, gpus, instance, need, with_gpus

HOST = with_gpus(instance("h"), *gpus(8))


def take(requirement: Requirement, sharing: str, blocks: int = 1) -> Take | tuple[Lack, ...]:
    from dataclasses import replace

    return measure(requirement, shape_of(replace(HOST, sharing=sharing, blocks=blocks)))


def test_exact_allots_one_cpu_and_its_share_of_memory_where_nothing_is_said():
    """The share is counted and not enforced."""
    got = take(Requirement(), "exact")
    assert isinstance(got, Take)
    assert (got.cpu_millicores, got.memory_bytes, got.memory_limited) == (1000, 8 * GB, False)
    assert (got.disk_bytes, got.gpu_count, got.blocks) == (0, 0, 0)


def test_exact_limits_memory_that_is_asked_for():
    """What is set is a hard limit."""
    got = take(need(cpu=2, memory=3, disk=5), "exact")
    assert isinstance(got, Take)
    assert (got.memory_bytes, got.memory_limited, got.disk_bytes) == (3 * GB, True, 5 * GB)


@pytest.mark.parametrize("cpu", range(1, 9))
def test_shares_of_memory_never_add_up_to_more_than_there_is(cpu: int):
    """As many jobs fit by memory as by CPU, whatever the sizes."""
    from dataclasses import replace

    odd = replace(HOST, memory_bytes=64 * GB + 7)
    got = measure(need(cpu=cpu), shape_of(odd))
    assert isinstance(got, Take)
    assert got.memory_bytes * (8 // cpu) <= odd.memory_bytes


def test_whole_takes_everything():
    """All units, none of them as a limit."""
    got = take(need(cpu=2), "whole")
    assert isinstance(got, Take)
    assert (got.cpu_millicores, got.memory_bytes, got.gpu_count) == (8000, 64 * GB, 8)
    assert not got.memory_limited


@pytest.mark.parametrize(
    ("requirement", "lack"),
    [
        (
            Requirement(cpu_min_millicores=1000, cpu_max_millicores=4000),
            Lack("cpu", 4000, 8000, True),
        ),
        (need(gpu=GpuRequirement(1, 4)), Lack("gpu", 4, 8, True)),
        (need(gpu=GpuRequirement(16)), Lack("gpu", 16, 8)),
        (need(disk=500), Lack("disk", 500 * GB, 200 * GB)),
    ],
)
def test_whole_respects_both_ends_of_a_range(requirement: Requirement, lack: Lack):
    """A host that is too large is no more suitable than one that is too small."""
    assert take(requirement, "whole") == (lack,)


def test_whole_asks_for_what_dstack_asks_for():
    """2 CPUs, 8GB and 100GB of disk where the document says nothing."""
    from dataclasses import replace

    small = replace(
        HOST, sharing="whole", cpu_millicores=1000, memory_bytes=4 * GB, disk_bytes=50 * GB
    )
    assert measure(Requirement(), shape_of(small)) == (
        Lack("cpu", 2000, 1000),
        Lack("memory", 8 * GB, 4 * GB),
        Lack("disk", 100 * GB, 50 * GB),
    )


@pytest.mark.parametrize(
    ("requirement", "blocks"),
    [
        (Requirement(), 1),
        (need(cpu=1), 1),
        (need(cpu=3), 2),
        (need(memory=17), 2),
        (need(gpu=GpuRequirement(3, None)), 2),
        (need(cpu=8, gpu=GpuRequirement(1, None)), 4),
    ],
)
def test_blocks_are_the_fewest_that_satisfy(requirement: Requirement, blocks: int):
    """Of four blocks of 2 CPUs, 16GB and 2 GPUs."""
    got = take(requirement, "blocks", 4)
    assert isinstance(got, Take)
    assert (got.blocks, got.cpu_millicores, got.memory_bytes, got.gpu_count) == (
        blocks,
        blocks * 2000,
        blocks * 16 * GB,
        blocks * 2,
    )


def test_a_block_with_more_gpus_than_accepted_is_refused():
    """One GPU exactly cannot be had where blocks have two."""
    assert take(need(gpus=1), "blocks", 4) == (Lack("gpu", 1, 2, True),)


def test_what_the_division_leaves_over_belongs_to_no_block():
    """Three blocks of an eight-CPU host have 7.998 of them."""
    assert take(need(cpu=8), "blocks", 3) == (Lack("cpu", 8000, 7998),)

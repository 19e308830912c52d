"""What an instance of a fleet has of its machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.agents.protocol.host_report import GpuReport, HostReport
from fleetform.providers.capacity import instance_report

DETECTED = HostReport(
    hostname="h",
    cpu_millicores=8000,
    memory_bytes=64_000,
    disk_bytes=1000,
    disk_free_bytes=500,
    memory_free_bytes=32_000,
    load_1m_milli=100,
    gpus=tuple(GpuReport(n, f"GPU-{n}", "A100", 80) for n in range(3)),
    python="3.9",
    kernel="6.1",
)


def test_a_single_instance_has_everything() -> None:
    """One node of a fleet that declares nothing is the machine."""
    assert instance_report(DETECTED, share=(1, 0), declared={}) == DETECTED


def test_two_instances_have_half_each() -> None:
    """Amounts are divided and GPUs dealt out in turn, in the host's order."""
    one, two = (instance_report(DETECTED, share=(2, number), declared={}) for number in (0, 1))
    assert (one.cpu_millicores, one.memory_bytes, one.disk_free_bytes) == (4000, 32_000, 250)
    assert [gpu.uuid for gpu in one.gpus] == ["GPU-0", "GPU-2"]
    assert [gpu.uuid for gpu in two.gpus] == ["GPU-1"]


@given(parts=st.integers(1, 12), cpu=st.integers(0, 10**6), gpus=st.integers(0, 9))
def test_shares_never_exceed_the_machine(parts, cpu, gpus) -> None:
    """All shares together have at most what is there, and each GPU once."""
    machine = HostReport(
        "h", cpu, 7, 7, 7, 7, 0, tuple(GpuReport(n, str(n), "g", 1) for n in range(gpus)), "", ""
    )
    shares = [instance_report(machine, share=(parts, n), declared={}) for n in range(parts)]
    assert cpu - parts < sum(share.cpu_millicores for share in shares) <= cpu
    dealt = sorted(gpu.index for share in shares for gpu in share.gpus)
    assert dealt == list(range(gpus))


def test_what_is_declared_counts_for_each_node() -> None:
    """A declared amount is not divided; what is not declared still is."""
    declared = {"cpu": 256_000, "memory": 256_000}
    report = instance_report(DETECTED, share=(2, 1), declared=declared)
    assert (report.cpu_millicores, report.memory_bytes) == (256_000, 256_000)
    assert report.disk_bytes == 500
    assert [gpu.uuid for gpu in report.gpus] == ["GPU-1"]


@pytest.mark.parametrize(
    ("devices", "indices"),
    [([0, 2], [0, 2]), (["GPU-1"], [1]), ([1, "GPU-1"], [1]), ([2, 7, "GPU-9"], [2]), ([], [])],
    ids=["indices", "uuid", "one in two spellings", "two that are not there", "none"],
)
def test_declared_devices_select_among_those_detected(devices, indices) -> None:
    """Each keeps its own index and uuid, and none takes the place of one that is not there."""
    report = instance_report(DETECTED, share=(1, 0), declared={"devices": devices})
    assert report.gpus == tuple(DETECTED.gpus[index] for index in indices)


@pytest.mark.parametrize(
    ("gpu", "made"),
    [
        ({"count": {"min": 0, "max": 0}}, ()),
        ({}, (GpuReport(0, "declared-0", "gpu", 0),)),
        (
            {"name": ["H100"], "memory": {"min": 80, "max": 80}, "count": {"min": 2, "max": 2}},
            (
                GpuReport(0, "declared-0", "H100", 80),
                GpuReport(1, "declared-1", "H100", 80),
            ),
        ),
        (
            {"vendor": "amd", "memory": {"min": None, "max": 64}},
            (GpuReport(0, "declared-0", "gpu", 64, "amd"),),
        ),
    ],
    ids=["none", "one", "two of a name", "open bound"],
)
def test_declared_gpus_replace_those_detected(gpu, made) -> None:
    """As many as declared, with uuids that say that nobody has seen them."""
    assert instance_report(DETECTED, share=(1, 0), declared={"gpu": gpu}).gpus == made

"""The catalogue that is part of the package, and the program that writes it."""

from __future__ import annotations

from collections import Counter

from fleetform.providers.offers.aws_generator import rows
from fleetform.providers.offers.catalogue import FIELDS, PRICED_ON, backends, offers

TYPE = {
    "VCpuInfo": {"DefaultVCpus": 4},
    "MemoryInfo": {"SizeInMiB": 16384},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    "SupportedUsageClasses": ["on-demand", "spot"],
}


def gpu(count):
    return {"Gpus": [{"Count": count, "Name": "L4", "Manufacturer": "NVIDIA", "MemoryInfo": {"SizeInMiB": 22888}}]}  # fmt: skip


def test_every_offer_of_a_catalogue_is_one_that_a_requirement_can_be_held_against():
    assert backends() == tuple(PRICED_ON)
    for backend in backends():
        found = offers(backend)
        counted = Counter((one.region, one.instance_type, one.spot) for one in found)
        assert set(counted.values()) == {1}
        for one in found:
            assert one.backend == backend
            assert one.cpu_count > 0
            assert one.memory_bytes > 0
            assert one.arch in {"x86", "arm"}
            assert (one.gpu_count > 0) == bool(one.gpu_name) == (one.gpu_memory_bytes > 0)
            assert one.price_micros is None or one.price_micros > 0


def test_hosts_with_gpus_have_a_price_on_demand():
    """Otherwise a limit to the price would exclude most of what the catalogue is for."""
    with_gpus = [one for one in offers("aws") if one.gpu_count and not one.spot]
    assert len([one for one in with_gpus if one.price_micros]) >= 0.9 * len(with_gpus) > 40


def test_a_type_is_offered_on_demand_with_a_price_and_spot_without():
    types = {"g6.xlarge": {**TYPE, "GpuInfo": gpu(1)}}
    on_demand, spot = rows(types, {"g6.xlarge": "0.804800"})
    assert on_demand == {
        "instance_name": "g6.xlarge",
        "location": "us-east-1",
        "price": "0.804800",
        "cpu": 4,
        "memory": "16",
        "gpu_count": 1,
        "gpu_name": "L4",
        "gpu_memory": "22.35",
        "spot": False,
        "gpu_vendor": "nvidia",
        "cpu_arch": "x86",
    }
    assert spot == {**on_demand, "price": "", "spot": True}
    assert set(on_demand) <= set(FIELDS)


def test_what_no_run_could_use_is_left_out():
    """A part of a GPU, and macOS."""
    mac = {**TYPE, "ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}}
    types = {"g6f.large": {**TYPE, "GpuInfo": gpu(0)}, "mac2.metal": mac}
    assert list(rows(types, {})) == []

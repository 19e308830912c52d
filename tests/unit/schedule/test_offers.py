"""Which offers satisfy a request, in which order, and why the others do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.model.run import GpuRequirement, Requirement
from fleetform.providers.offers.catalogue import Offer
from fleetform.schedule.offers import OfferRequest, select
from fleetform.spec.quantities.ranges import Range

GB = 1 << 30
A100 = Offer(
    "aws", "us-east-1", "p4de.24xlarge", False, 96, "x86", 1152 * GB, 8, "nvidia", "A100", 80 * GB, 27_447_050,
)  # fmt: skip
SMALL = Offer("aws", "us-east-1", "t4g.large", False, 2, "arm", 8 * GB, 0, "", "", 0, 67_200)

OFFERS = st.lists(
    st.builds(
        lambda kind, region, spot, price: replace(
            kind, region=region, spot=spot, price_micros=price
        ),
        st.sampled_from([A100, SMALL, replace(A100, gpu_count=1, cpu_count=12)]),
        st.sampled_from(["us-east-1", "eu-west-1"]),
        st.booleans(),
        st.sampled_from([None, 1, 67_200, 27_447_050]),
    ),
    max_size=12,
)
REQUESTS = st.builds(
    OfferRequest,
    requirement=st.sampled_from(
        [Requirement(), Requirement(gpu=GpuRequirement(1)), Requirement(cpu_min_millicores=50_000)]
    ),
    arch=st.sampled_from(["", "x86", "arm"]),
    regions=st.sampled_from([(), ("eu-west-1",)]),
    spot=st.sampled_from(["on-demand", "spot", "auto"]),
    max_price_micros=st.sampled_from([None, 100_000]),
)


@given(OFFERS, REQUESTS)
def test_each_offer_is_chosen_or_counted_once(offers, request):
    """Nothing is lost: the reasons say how many were left out, and why."""
    found = select(offers, request)
    assert len(found.offers) + sum(found.reasons.values()) == len(offers)


@given(OFFERS, REQUESTS)
def test_the_cheapest_comes_first_and_unknown_prices_last(offers, request):
    prices = [one.price_micros for one in select(offers, request).offers]
    known = [price for price in prices if price is not None]
    assert known == sorted(known)
    assert prices[: len(known)] == known


@given(OFFERS, REQUESTS)
def test_a_highest_price_excludes_what_costs_more_or_an_unknown_amount(offers, request):
    limited = select(offers, replace(request, max_price_micros=100_000)).offers
    assert all(one.price_micros is not None and one.price_micros <= 100_000 for one in limited)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (OfferRequest(regions=("eu-west-1",)), "region"),
        (OfferRequest(backends=frozenset({"gcp"})), "backend"),
        (OfferRequest(instance_types=frozenset({"p5.48xlarge"})), "type"),
        (OfferRequest(spot="spot"), "spot"),
        (OfferRequest(arch="arm"), "arch"),
        (OfferRequest(Requirement(gpu=GpuRequirement(8, 8, ("H100",)))), "gpu"),
        (OfferRequest(Requirement(gpu=GpuRequirement(1, 4))), "gpu"),
        (OfferRequest(gpu_memory_total_bytes=Range(641 * GB, None)), "gpu"),
        (OfferRequest(gpu_memory_total_bytes=Range(None, 639 * GB)), "gpu"),
        (OfferRequest(Requirement(cpu_min_millicores=97_000)), "cpu"),
        (OfferRequest(Requirement(memory_min_bytes=2000 * GB)), "memory"),
        (OfferRequest(Requirement(memory_max_bytes=64 * GB)), "memory"),
        (OfferRequest(max_price_micros=27_000_000), "price"),
    ],
)
def test_the_reason_says_what_the_request_excludes(request_, reason):
    assert select([A100], request_).reasons == {reason: 1}


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement(gpu=GpuRequirement(8, 8, ("A100",), 80 * GB, 80 * GB)),
        Requirement(gpu=GpuRequirement(2, None)),
        Requirement(cpu_min_millicores=96_000, memory_min_bytes=1152 * GB),
        Requirement(disk_min_bytes=4000 * GB),
    ],
)
def test_a_host_that_has_enough_is_offered(requirement):
    """A disk is made as large as it is asked for."""
    request = OfferRequest(requirement, gpu_memory_total_bytes=Range(640 * GB, 640 * GB))
    assert select([A100], request).offers == (A100,)


def test_a_document_says_what_is_asked():
    document = {
        "resources": {
            "cpu": {"min": 4000, "max": None, "arch": "x86"},
            "gpu": {"name": ["A100"], "total_memory": {"min": 160 * GB, "max": None}},
        },
        "backends": ["aws"],
        "regions": ["us-east-1"],
        "instance_types": ["p4de.24xlarge"],
        "spot_policy": "auto",
        "max_price": 30_000_000,
    }
    assert OfferRequest.from_document(document) == OfferRequest(
        requirement=Requirement(cpu_min_millicores=4000, gpu=GpuRequirement(1, None, ("A100",))),
        gpu_memory_total_bytes=Range(160 * GB, None),
        arch="x86",
        backends=frozenset({"aws"}),
        regions=("us-east-1",),
        instance_types=frozenset({"p4de.24xlarge"}),
        spot="auto",
        max_price_micros=30_000_000,
    )

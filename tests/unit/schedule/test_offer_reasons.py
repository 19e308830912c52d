"""Why no offer is left: the requirement that excludes the last ones, the nearest of them, and what to change."""

from __future__ import annotations

import pytest

from fleetform.providers.offers.catalogue import Offer
from fleetform.schedule.offer_reasons import no_offer
from fleetform.schedule.offers import OfferRequest, select

GB = 1 << 30


def offer(instance_type, price, **more):
    facts = {
        "backend": "aws", "region": "us-east-1", "instance_type": instance_type, "spot": False, "cpu_count": 8,
        "arch": "x86", "memory_bytes": 64 * GB, "gpu_count": 0, "gpu_vendor": "", "gpu_name": "",
        "gpu_memory_bytes": 0, "price_micros": price, **more,
    }  # fmt: skip
    return Offer(**facts)


def gpus(name, count, memory=80):
    return {
        "gpu_vendor": "nvidia",
        "gpu_name": name,
        "gpu_count": count,
        "gpu_memory_bytes": memory * GB,
    }


OFFERS = [
    offer("c1.large", 100_000),
    offer("g1.small", 900_000, **gpus("L4", 1, 24)),
    offer("p1.small", 4_000_000, **gpus("H100", 1)),
    offer("p1.large", 32_000_000, cpu_count=96, **gpus("H100", 8)),
    offer("p1.large", None, cpu_count=96, region="us-west-2", **gpus("H100", 8)),
    offer("t1.micro", 5_000, arch="arm", memory_bytes=GB),
    offer("t3.large", 83_200),
]
H100 = {"name": ["H100"], "count": {"min": 8, "max": 8}}


def why(**document):
    request = OfferRequest.from_document(document)
    return no_offer(select(OFFERS, request), request, document.get("resources") or {})


@pytest.mark.parametrize(
    ("document", "text", "advice"),
    [
        (
            {"resources": {"gpu": H100}, "regions": ["us-east-1"], "max_price": 1_500_000},
            "`max_price: 1.5` excludes the only remaining offer on demand: the nearest, p1.large in us-east-1, costs $32.00/h",
            "write `max_price: 32` or more",
        ),
        (
            {"resources": {"gpu": H100}, "max_price": 1_500_000},
            "costs $32.00/h; 1 more offer of unknown price",
            "write `max_price: 32` or more",
        ),
        (
            {"resources": {"gpu": H100}, "regions": ["us-west-2"], "max_price": 9_000_000},
            "`max_price: 9` excludes the only remaining offer on demand, because the price is not known: p1.large in us-west-2",
            "`fleetform offer --refresh --region us-west-2` asks AWS",
        ),
        (
            {"resources": {"gpu": {"name": ["A100"]}}, "instance_types": ["g1.small", "c1.large"]},
            "`gpu: A100` excludes both remaining offers on demand: g1.small has L4:24GB:1 and c1.large has no GPU",
            "change `resources.gpu` or `instance_types`",
        ),
        (
            {"resources": {"gpu": {"name": ["H100"], "count": {"min": 3, "max": 3}}}},
            "offers on demand: p1.small has H100:80GB:1 and p1.large has H100:80GB:8",
            "change `resources.gpu`",
        ),
        (
            {"resources": {"gpu": {"total_memory": {"min": 900 * GB, "max": None}}}},
            "`gpu: 900GB.. in all` excludes",
            "change `resources.gpu`",
        ),
        (
            {"resources": {"gpu": H100, "cpu": {"min": 200_000, "max": None}}},
            "`cpu: 200..` excludes both remaining offers on demand: the nearest, p1.large in us-east-1, has 96 CPUs",
            "change `resources.cpu`",
        ),
        (
            {"resources": {"gpu": H100, "memory": {"min": 128 * GB, "max": None}}},
            "`memory: 128GB..` excludes both remaining offers on demand: the nearest, p1.large in us-east-1, has 64GB",
            "change `resources.memory`",
        ),
        (
            {"instance_types": ["t1.micro"]},
            "the default `memory: 8GB..` excludes the only remaining offer on demand: the nearest, t1.micro in us-east-1, has 1GB",
            "change `resources.memory` or `instance_types`",
        ),
        (
            {"instance_types": ["t1.micro"], "resources": {"cpu": {"arch": "x86"}}},
            "`cpu: x86` excludes the only remaining offer on demand: the nearest, t1.micro in us-east-1, is arm",
            "change `resources.cpu` or `instance_types`",
        ),
        (
            {"placement": "cluster", "instance_types": ["t3.large"]},
            "`placement: cluster` excludes the only remaining offer on demand: the nearest, t3.large in us-east-1, is a burstable type",
            "name other types in `instance_types`, or remove `placement: cluster`",
        ),
        (
            {"instance_types": ["c1.large"], "spot_policy": "spot"},
            "`spot_policy: spot` excludes the only remaining offer: the nearest, c1.large in us-east-1, is on demand",
            "write `spot_policy: auto` or change `instance_types`",
        ),
        (
            {"instance_types": ["c1.large"], "regions": ["us-west-2"]},
            "c1.large is not offered in us-west-2",
            "name another type or another region",
        ),
        (
            {"regions": ["eu-west-1"]},
            "no catalogue has offers in eu-west-1",
            "`fleetform offer --refresh --region eu-west-1` asks AWS",
        ),
    ],
)
def test_the_requirement_that_leaves_no_offer_is_named(document, text, advice):
    """With the nearest offers, of which the first lacks least."""
    said, next_step = why(**document)
    assert text in said
    assert advice in next_step

"""Which offers of clouds satisfy what a run or a fleet asks for, the cheapest first."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fleetform.model.instance import Gpu
from fleetform.model.run import Requirement, requirement
from fleetform.providers.offers.catalogue import Offer
from fleetform.schedule.demand import Shape, Take, cpu_needed, gpu_matches, measure, memory_needed
from fleetform.spec.clouds.names import is_burstable
from fleetform.spec.quantities.ranges import Range


@dataclass(frozen=True, slots=True)
class OfferRequest:
    """
    What is asked of an offer. Empty sets narrow nothing. Of offers at one price, those of the first of the `regions` are first.

    `gpu_memory_total_bytes` is a range of the memory of all GPUs of a host together. `spot` is `spot`,
    `on-demand` or `auto`, which is either. `arch` is `x86`, `arm` or empty. `in_cluster`: in a cluster placement group, in which
    there are no burstable types.
    """

    requirement: Requirement = field(default_factory=Requirement)
    gpu_memory_total_bytes: Range | None = None
    arch: str = ""
    backends: frozenset[str] = frozenset()
    regions: tuple[str, ...] = ()
    instance_types: frozenset[str] = frozenset()
    spot: str = "on-demand"
    max_price_micros: int | None = None
    in_cluster: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> OfferRequest:
        """Read the canonical document of a run or a fleet."""
        resources = document.get("resources") or {}
        total = (resources.get("gpu") or {}).get("total_memory")
        return cls(
            requirement=requirement(resources),
            gpu_memory_total_bytes=None if total is None else Range.from_document(total),
            arch=(resources.get("cpu") or {}).get("arch", ""),
            backends=frozenset(document.get("backends") or ()),
            regions=tuple(document.get("regions") or ()),
            instance_types=frozenset(document.get("instance_types") or ()),
            spot=document.get("spot_policy") or "on-demand",
            max_price_micros=document.get("max_price"),
            in_cluster=document.get("placement") == "cluster",
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """
    The offers that satisfy a request, and why the others do not.

    `offers` has the cheapest first, and those of unknown price last, the smallest first. `reasons` counts each other
    offer once, under the first of `REASONS` that holds. If no offer satisfies the request, `last` is the last of these reasons, and
    `nearest` are the offers that it excludes, the nearest to the request first: they satisfy what was compared before. Of `backend`,
    `region` and `type` none is near. `unpriced` are all offers that only `unknown price` excludes.
    """

    offers: tuple[Offer, ...]
    reasons: Mapping[str, int]
    last: str = ""
    nearest: tuple[Offer, ...] = ()
    unpriced: tuple[Offer, ...] = ()


REASONS = (
    "backend", "region", "type", "placement", "spot", "arch", "gpu", "cpu", "memory", "unknown price", "price",
)  # fmt: skip
"""Why an offer does not satisfy a request, in the order of comparison; `price`: it is too high."""

_ELSEWHERE = frozenset({"backend", "region", "type"})
"""Reasons that exclude nearly all offers, none of which is near."""


def select(offers: Iterable[Offer], request: OfferRequest) -> Selection:
    """Choose among offers; a job takes a host as a whole, as on a fleet shared `whole`."""
    chosen: list[Offer] = []
    excluded: dict[str, list[Offer]] = {}
    lacking = functools.cache(functools.partial(_lacking, request.requirement))
    for offer in offers:
        reason = _not_wanted(offer, request) or lacking(_shape(offer)) or _too_dear(offer, request)
        if reason:
            excluded.setdefault(reason, []).append(offer)
        else:
            chosen.append(offer)
    chosen.sort(key=functools.partial(_order, request.regions))
    unpriced = tuple(excluded.get("unknown price", ()))
    reasons = {reason: len(excluded[reason]) for reason in REASONS if reason in excluded}
    if chosen or not reasons:
        return Selection(tuple(chosen), reasons, unpriced=unpriced)
    last = list(reasons)[-1]
    if last in _ELSEWHERE:
        return Selection((), reasons, last, unpriced=unpriced)
    nearest = sorted(excluded[last], key=lambda one: _nearness(last, one, request))
    return Selection((), reasons, last, tuple(nearest), unpriced)


def _order(regions: Sequence[str], offer: Offer) -> tuple[object, ...]:
    price = offer.price_micros
    # A larger instance costs more, whatever either costs.
    size = (
        (0, 0, 0) if price is not None else (offer.gpu_count, offer.cpu_count, offer.memory_bytes)
    )
    return (
        price is None,
        price or 0,
        size,
        offer.backend,
        regions.index(offer.region) if regions else 0,
        offer.region,
        offer.instance_type,
        offer.spot,
    )


def _not_wanted(offer: Offer, request: OfferRequest) -> str:
    if request.backends and offer.backend not in request.backends:
        return "backend"
    if request.regions and offer.region not in request.regions:
        return "region"
    if request.instance_types and offer.instance_type not in request.instance_types:
        return "type"
    if request.in_cluster and is_burstable(offer.instance_type):
        return "placement"
    if request.spot != "auto" and offer.spot != (request.spot == "spot"):
        return "spot"
    if request.arch and offer.arch != request.arch:
        return "arch"
    total = request.gpu_memory_total_bytes
    return "" if total is None or _has_in_all(offer, total) else "gpu"


def _has_in_all(offer: Offer, total: Range) -> bool:
    memory = offer.gpu_count * offer.gpu_memory_bytes
    return (total.min is None or memory >= total.min) and (total.max is None or memory <= total.max)


def _lacking(requirement: Requirement, shape: Shape) -> str:
    demand = measure(requirement, shape)
    if isinstance(demand, Take):
        return ""
    lacks = {lack.resource for lack in demand}
    return next(resource for resource in ("gpu", "cpu", "memory") if resource in lacks)


def _shape(offer: Offer) -> Shape:
    return Shape(
        sharing="whole",
        blocks=1,
        cpu_millicores=offer.cpu_count * 1000,
        memory_bytes=offer.memory_bytes,
        disk_bytes=0,
        gpus=((offer.gpu_vendor, offer.gpu_name, offer.gpu_memory_bytes),) * offer.gpu_count,
        # The root disk is made as large as is asked for.
        unknown=frozenset({"disk"}),
    )


def _too_dear(offer: Offer, request: OfferRequest) -> str:
    if request.max_price_micros is None:
        return ""
    if offer.price_micros is None:
        return "unknown price"
    return "price" if offer.price_micros > request.max_price_micros else ""


def _nearness(reason: str, offer: Offer, request: OfferRequest) -> tuple[object, ...]:
    """Order the offers that a reason excludes by how little they lack."""
    distances = {"gpu": _gpu_distance, "cpu": _cpu_distance, "memory": _memory_distance}
    distance = distances[reason](offer, request) if reason in distances else ()
    return (*distance, *_order(request.regions, offer))


def _gpu_distance(offer: Offer, request: OfferRequest) -> tuple[object, ...]:
    """Another model is farther than another memory, and that than another number."""
    gpu = request.requirement.gpu
    if gpu is None or not offer.gpu_count:
        return (not offer.gpu_count, True, True, 0, 0)
    has = Gpu("", offer.gpu_name, offer.gpu_memory_bytes, vendor=offer.gpu_vendor)
    model = replace(gpu, memory_min_bytes=None, memory_max_bytes=None)
    return (
        False,
        not gpu_matches(model, has),
        not gpu_matches(gpu, has),
        abs(offer.gpu_memory_bytes - (gpu.memory_min_bytes or offer.gpu_memory_bytes)),
        abs(offer.gpu_count - gpu.count_min),
    )


def _cpu_distance(offer: Offer, request: OfferRequest) -> tuple[object, ...]:
    return (abs(offer.cpu_count * 1000 - cpu_needed(request.requirement, "whole")),)


def _memory_distance(offer: Offer, request: OfferRequest) -> tuple[object, ...]:
    return (abs(offer.memory_bytes - memory_needed(request.requirement)),)

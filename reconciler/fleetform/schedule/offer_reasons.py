"""
Say which requirement leaves no offer, which offers are nearest to it, and what to change.

Requirements are written as in a document, `max_price: 1.5`, because that is where they are changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.figures import counted, dollars, first_of, size
from fleetform.model.offers import gpu_text, offer_text
from fleetform.providers.offers.catalogue import Offer
from fleetform.schedule.demand import WHOLE_CPU_MILLICORES, WHOLE_MEMORY_BYTES
from fleetform.schedule.offers import OfferRequest, Selection
from fleetform.spec.quantities import (
    Cpu,
    Gpu,
    Range,
    format_bytes,
    format_cpu,
    format_gpu,
    format_range,
)
from fleetform.spec.quantities.price import format_price

__all__ = ["no_offer", "refresh_command", "spot_warning"]

_NEAREST_MAX = 3
"""Offers in a sentence; `fleetform offer` lists all."""


def no_offer(
    found: Selection, request: OfferRequest, resources: Mapping[str, Any]
) -> tuple[str, str]:
    """
    Return why no offer satisfies a request, and what to change.

    Args:
        found: What `select` has found for `request`.
        request: What is asked for.
        resources: The canonical `resources` that `request` is made from.
    """
    kind = {"on-demand": " on demand", "spot": " of spot instances"}.get(request.spot, "")
    if found.last in {"region", "backend"}:
        return (
            f"no catalogue has offers in {' or '.join(request.regions)}",
            f"`{refresh_command(request.regions)}` asks AWS for them",
        )
    if found.last == "type":
        types = first_of(sorted(request.instance_types), _NEAREST_MAX)
        place = " or ".join(request.regions) or "any region"
        return f"{types} is not offered in {place}", "name another type or another region"
    count = found.reasons[found.last]
    counts = {1: "the only remaining offer", 2: "both remaining offers"}
    last = counts.get(count, f"all {count} remaining offers")
    asked = _requirement(found.last, request, resources)
    what = f"{asked} excludes {last}{'' if found.last == 'spot' else kind}"
    if found.last == "unknown price":
        regions = tuple(dict.fromkeys(one.region for one in found.nearest))
        return (
            f"{what}, because the price is not known: {_names(found.nearest)}",
            f"the catalogue has prices on demand in us-east-1; `{refresh_command(regions)}` asks AWS for the others",
        )
    more = found.reasons.get("unknown price", 0)
    rest = f"; {counted(more, 'more offer')} of unknown price" if more else ""
    return f"{what}: {_nearest_text(found, request)}{rest}", _advice(found, request)


def spot_warning(found: Selection, request: OfferRequest) -> str:
    """Say that spot instances, which `spot_policy: auto` allows, are not asked for or come last; empty: their prices are known, or there are none."""
    if request.spot != "auto" or any(
        one.spot and one.price_micros is not None for one in found.offers
    ):
        return ""
    is_excluded = any(one.spot for one in found.unpriced)
    unpriced = [one for one in (found.unpriced if is_excluded else found.offers) if one.spot]
    if not unpriced:
        return ""
    regions = tuple(dict.fromkeys(one.region for one in unpriced))
    limit = format_price(request.max_price_micros or 0)
    effect = (
        f"`max_price: {limit}` excludes spot instances"
        if is_excluded
        else "spot instances come last"
    )
    return f"{effect}, because their prices are not known; `{refresh_command(regions)}` asks AWS for them"


def refresh_command(regions: tuple[str, ...]) -> str:
    """Write the command that asks AWS for its offers and prices in these regions."""
    return " ".join(["fleetform offer --refresh", *(f"--region {one}" for one in regions)])


def _requirement(reason: str, request: OfferRequest, resources: Mapping[str, Any]) -> str:
    """Write the requirement of a reason as a document has it."""
    if reason in {"price", "unknown price"}:
        return f"`max_price: {format_price(request.max_price_micros or 0)}`"
    if reason == "spot":
        return f"`spot_policy: {request.spot}`"
    if reason == "placement":
        return "`placement: cluster`"
    if reason == "gpu":
        gpu = resources.get("gpu") or {}
        total = gpu.get("total_memory")
        written = format_gpu(Gpu.from_document(gpu))
        if total is not None:
            memory = format_range(Range.from_document(total), format_bytes)
            written = f"{written} with {memory} in all" if written else f"{memory} in all"
        return f"`gpu: {written}`"
    asked = resources.get("cpu" if reason == "arch" else reason)
    if reason == "memory":
        text = format_range(Range.from_document(asked), format_bytes) if asked else ""
        return _or_default("memory", text, f"{format_bytes(WHOLE_MEMORY_BYTES)}..")
    return _or_default(
        "cpu", format_cpu(Cpu.from_document(asked)) if asked else "", f"{WHOLE_CPU_MILLICORES // 1000}.."
    )  # fmt: skip


def _or_default(field: str, written: str, default: str) -> str:
    return f"`{field}: {written}`" if written else f"the default `{field}: {default}`"


def _nearest_text(found: Selection, request: OfferRequest) -> str:
    """Say what the nearest offers have."""
    first = found.nearest[0]
    if found.last == "gpu":
        return _nearest_gpus(found, request)
    has = {
        "price": f"costs {dollars(first.price_micros or 0)}/h",
        "placement": "is a burstable type",
        "spot": "is on demand" if request.spot == "spot" else "is a spot instance",
        "arch": f"is {first.arch}",
        "cpu": f"has {counted(first.cpu_count, 'CPU')}",
        "memory": f"has {size(first.memory_bytes)}",
    }[found.last]
    return f"the nearest, {_name(first)}, {has}"


def _nearest_gpus(found: Selection, request: OfferRequest) -> str:
    """Write `p5.4xlarge has H100:80GB:1 and p5.48xlarge has H100:80GB:8`: each declared type, or one type for each kind and number of GPUs."""
    gpu = request.requirement.gpu
    is_named = gpu is not None and gpu.names and not request.instance_types
    shown: dict[str, str] = {}
    for one in found.nearest:
        if is_named and one.gpu_name != found.nearest[0].gpu_name:
            continue
        has = gpu_text(one.gpu_name, one.gpu_memory_bytes, one.gpu_count) or "no GPU"
        shown.setdefault(
            one.instance_type if request.instance_types else has, f"{one.instance_type} has {has}"
        )
    *others, last = list(shown.values())[:_NEAREST_MAX]
    return f"{', '.join(others)} and {last}" if others else last


def _advice(found: Selection, request: OfferRequest) -> str:
    types = " or `instance_types`" if request.instance_types else ""
    return {
        "price": f"write `max_price: {format_price(found.nearest[0].price_micros or 0)}` or more, or loosen another requirement",
        "spot": f"write `spot_policy: auto`{types.replace('or', 'or change')}",
        "placement": "name other types in `instance_types`, or remove `placement: cluster`",
        "arch": f"change `resources.cpu`{types}",
        "gpu": f"change `resources.gpu`{types}; `fleetform offer --gpu 1` lists all types with GPUs",
        "cpu": f"change `resources.cpu`{types}",
        "memory": f"change `resources.memory`{types}",
    }[found.last]


def _names(offers: tuple[Offer, ...]) -> str:
    return first_of([_name(one) for one in offers], _NEAREST_MAX)


def _name(offer: Offer) -> str:
    return offer_text(
        {"instance_type": offer.instance_type, "region": offer.region, "spot": offer.spot}
    )

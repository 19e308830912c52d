"""
Offers of a cloud, from the catalogue of it that is part of this package.

A catalogue is a CSV in the format of gpuhunt: a row is one instance type in one region, on demand or
spot. An empty price is unknown. `aws_generator` writes that of AWS and says where it comes from.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files

from fleetform.spec.quantities.price import parse_price

GB = 1 << 30

FIELDS = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory",
          "spot", "disk_size", "gpu_vendor", "flags", "cpu_arch")  # fmt: skip

PRICED_ON = {"aws": date(2026, 7, 20)}
"""The day of the prices in each catalogue."""


@dataclass(frozen=True, slots=True)
class Offer:
    """
    One instance type in a region, on demand or spot.

    `arch` is `x86` or `arm`. `gpu_memory_bytes` is that of one GPU. `price_micros` are micro-dollars
    an hour; None: unknown.
    """

    backend: str
    region: str
    instance_type: str
    spot: bool
    cpu_count: int
    arch: str
    memory_bytes: int
    gpu_count: int
    gpu_vendor: str
    gpu_name: str
    gpu_memory_bytes: int
    price_micros: int | None


def backends() -> tuple[str, ...]:
    """Name the clouds that have a catalogue."""
    return tuple(PRICED_ON)


@functools.cache
def offers(backend: str) -> tuple[Offer, ...]:
    """
    Read the catalogue of a cloud, in its order.

    Raises:
        KeyError: No catalogue has that name; `backends` lists them.
    """
    if backend not in PRICED_ON:
        raise KeyError(backend)
    text = (files(__package__) / f"{backend}.csv").read_text(encoding="utf-8")
    return tuple(_offers(backend, text.splitlines()))


def _offers(backend: str, lines: Sequence[str]) -> Iterator[Offer]:
    for row in csv.DictReader(lines):
        yield Offer(
            backend=backend,
            region=row["location"],
            instance_type=row["instance_name"],
            spot=row["spot"] == "True",
            cpu_count=int(row["cpu"]),
            arch=row["cpu_arch"],
            memory_bytes=_bytes(row["memory"]),
            gpu_count=int(row["gpu_count"]),
            gpu_vendor=row["gpu_vendor"],
            gpu_name=row["gpu_name"],
            gpu_memory_bytes=_bytes(row["gpu_memory"]),
            price_micros=parse_price(row["price"]) if row["price"] else None,
        )


def _bytes(gigabytes: str) -> int:
    return int(float(gigabytes) * GB) if gigabytes else 0

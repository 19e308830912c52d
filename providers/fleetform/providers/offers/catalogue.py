"""
Offers of a cloud, from the catalogue of it that is part of this package, and from what the cloud has said since.

A catalogue is a CSV in the format of gpuhunt: a row is one instance type in one region, on demand or
spot. An empty price is unknown. It is in `spec/clouds`, because its names are checked in documents. `aws_generator` writes that of AWS and
says where it comes from. A region that the cloud
was asked about has a file of its own, in place of its rows in the catalogue.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleetform.providers.private_files import replace_private
from fleetform.spec.clouds.names import REGIONS, catalogue_lines
from fleetform.spec.quantities.price import parse_price

if TYPE_CHECKING:
    from fleetform.providers.contract.errors import ProviderError

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


class RegionOffers(NamedTuple):
    """
    What a cloud answers for a region: rows with the columns `FIELDS`, some without a price.

    `on_demand_problem` and `spot_problem` are why it told no prices of that kind; None: it answered, if with none.
    """

    rows: list[dict[str, object]]
    on_demand_problem: ProviderError | None = None
    spot_problem: ProviderError | None = None


def backends() -> tuple[str, ...]:
    """Name the clouds that have a catalogue."""
    return tuple(PRICED_ON)


def offers(backend: str, refreshed: Path | None = None) -> tuple[Offer, ...]:
    """
    Read the offers of a cloud.

    Args:
        backend: A name of `backends`.
        refreshed: The folder of `write_region`.

    Raises:
        KeyError: No catalogue has that name.
    """
    files_there = _regions(backend, refreshed)
    shipped = [one for one in _shipped(backend) if one.region not in files_there]
    for path in files_there.values():
        shipped += _refreshed(backend, path, path.stat().st_mtime_ns)
    return tuple(shipped)


def write_region(
    folder: Path, backend: str, region: str, rows: Iterable[Mapping[str, object]]
) -> None:
    """Keep what a cloud offers in a region; `rows` have the columns `FIELDS`."""
    written = io.StringIO()
    writer = csv.DictWriter(written, FIELDS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace_private(folder / f"{backend}-{region}.csv", written.getvalue().encode())


def priced_on(rows: Iterable[Offer], refreshed: Path | None = None) -> dict[str, date]:
    """Return the day of the prices of offers, by the cloud or by its region if that was asked."""
    days: dict[str, date] = {}
    for backend, region in sorted({(one.backend, one.region) for one in rows}):
        path = _regions(backend, refreshed).get(region)
        if path is None:
            days[backend] = PRICED_ON[backend]
        else:
            moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            days[f"{backend} in {region}"] = moment.date()
    return days


def _regions(backend: str, refreshed: Path | None) -> dict[str, Path]:
    found = () if refreshed is None else sorted(refreshed.glob(f"{backend}-*.csv"))
    return {path.stem.removeprefix(f"{backend}-"): path for path in found}


@functools.cache
def _refreshed(backend: str, path: Path, _changed_ns: int) -> tuple[Offer, ...]:
    return tuple(_offers(backend, path.read_text(encoding="utf-8").splitlines()))


@functools.cache
def _shipped(backend: str) -> tuple[Offer, ...]:
    if backend not in PRICED_ON:
        raise KeyError(backend)
    return tuple(_offers(backend, catalogue_lines(backend)))


def offers_elsewhere(
    backend: str, regions: Iterable[str], refreshed: Path | None = None
) -> tuple[Offer, ...]:
    """
    Return the types of a catalogue in regions of the cloud that it does not have, at unknown prices.

    Which of its types a region has is not known before it is asked for one. `refreshed` is as in `offers`.
    """
    known = {one.region for one in offers(backend, refreshed)}
    others = [one for one in regions if one in REGIONS[backend] and one not in known]
    types = {(one.instance_type, one.spot): one for one in offers(backend)}
    return tuple(
        replace(one, region=region, price_micros=None)
        for region in others
        for one in types.values()
    )


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

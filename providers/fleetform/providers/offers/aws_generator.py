"""
Write `spec/clouds/aws.csv`, the catalogue of AWS.

    python -m fleetform.providers.offers.aws_generator MOTO_FOLDER PRICING_FILE

MOTO_FOLDER is an installed `moto` (Apache-2.0), whose `ec2/resources` repeat what AWS answers to
DescribeInstanceTypes and DescribeInstanceTypeOfferings. PRICING_FILE is
`pkg/providers/pricing/zz_generated.pricing_aws.go` of the Go module
`github.com/aws/karpenter-provider-aws` (Apache-2.0), a table of prices on demand in us-east-1.
Spot prices change by the hour and have no such table, so spot offers have no price. After a new
table, correct the day in `catalogue.PRICED_ON`.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleetform.providers.offers.catalogue import FIELDS
from fleetform.spec.clouds.names import catalogue_file

REGION = "us-east-1"

_PRICE = re.compile(r'"([a-z0-9][a-z0-9-]*\.[a-z0-9-]+)": ([0-9.]+)')
_ARCHITECTURES = {"x86_64": "x86", "arm64": "arm"}
# AWS sells this GPU under another name than NVIDIA.
_GPU_NAMES = {"RTX PRO Server 6000": "RTX PRO 6000", "RTX PRO Server 4500": "RTX PRO 4500"}


def rows(
    types: Mapping[str, Any],
    prices: Mapping[str, str],
    *,
    region: str = REGION,
    spot_prices: Mapping[str, str] | None = None,
) -> Iterator[dict[str, object]]:
    """Make the rows of types, with those of spot after those on demand, sorted by name."""
    for name, one in sorted(types.items()):
        # Agents need Linux, and requirements count whole GPUs.
        architectures = one["ProcessorInfo"]["SupportedArchitectures"]
        arch = next((_ARCHITECTURES[a] for a in architectures if a in _ARCHITECTURES), None)
        gpus = one.get("GpuInfo", {}).get("Gpus", [])
        if arch is None or any(not gpu["Count"] for gpu in gpus):
            continue
        gpu = gpus[0] if gpus else None
        row: dict[str, object] = {
            "instance_name": name,
            "location": region,
            "cpu": one["VCpuInfo"]["DefaultVCpus"],
            "memory": _gigabytes(one["MemoryInfo"]["SizeInMiB"]),
            "gpu_count": gpu["Count"] if gpu else 0,
            "gpu_name": _GPU_NAMES.get(gpu["Name"], gpu["Name"]) if gpu else "",
            "gpu_memory": _gigabytes(gpu["MemoryInfo"]["SizeInMiB"]) if gpu else "",
            "gpu_vendor": gpu["Manufacturer"].lower() if gpu else "",
            "cpu_arch": arch,
        }
        if "on-demand" in one["SupportedUsageClasses"]:
            yield {**row, "price": prices.get(name, ""), "spot": False}
        if "spot" in one["SupportedUsageClasses"]:
            yield {**row, "price": (spot_prices or {}).get(name, ""), "spot": True}


def _gigabytes(mebibytes: int) -> str:
    return f"{mebibytes / 1024:.2f}".rstrip("0").rstrip(".")


def main(moto: Path, pricing: Path) -> None:
    resources = moto / "ec2" / "resources"
    types = json.loads(gzip.decompress((resources / "instance_types.json.gz").read_bytes()))
    offered = resources / "instance_type_offerings" / "region" / f"{REGION}.json.gz"
    names = {one["InstanceType"] for one in json.loads(gzip.decompress(offered.read_bytes()))}
    prices = dict(_PRICE.findall(pricing.read_text(encoding="utf-8")))
    kept = {name: one for name, one in types.items() if name in names}
    with catalogue_file("aws").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(kept, prices))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""
A stand-in of NVIDIA's driver for the hosts behind instances: `nvidia-smi` lists the GPUs of the instance type.

It lists them for the agent and for people. There is no device behind them, and no process uses one.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from cloud.catalog import instance_types

_DRIVER = "580.95.05"

_PROGRAM = """\
#!/usr/bin/python3
# A stand-in of NVIDIA's program: there are no such devices.
import sys

GPUS = {gpus!r}
for number, gpu in enumerate(GPUS):
    gpu["index"] = str(number)

words = dict(word.partition("=")[::2] for word in sys.argv[1:])
if "--query-gpu" in words:
    for gpu in GPUS:
        values = [gpu.get(column.strip(), "[N/A]") for column in words["--query-gpu"].split(",")]
        if "nounits" not in words.get("--format", "") and "memory.total" in words["--query-gpu"]:
            values = [f"{{value}} MiB" if value == gpu["memory.total"] else value for value in values]
        print(", ".join(values))
elif not any(word.startswith("--query") for word in words):
    for gpu in GPUS:
        print("GPU {{index}}: {{name}} (UUID: {{uuid}})".format(**gpu))
"""


def gpus_of(instance_type: str, identity: str) -> list[dict[str, str]]:
    """Return what the driver says of each GPU of an instance, by the names of its columns."""
    described = instance_types()[instance_type].get("GpuInfo", {}).get("Gpus", [])
    rows = [
        row for row in described if row["Manufacturer"] == "NVIDIA" for _ in range(row["Count"])
    ]
    return [
        {
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{identity} {number}')}",
            "name": f"NVIDIA {row['Name']}",
            "memory.total": str(row["MemoryInfo"]["SizeInMiB"]),
            "driver_version": _DRIVER,
        }
        for number, row in enumerate(rows)
    ]


def write_driver(folder: Path, instance_type: str, identity: str) -> None:
    """Write `nvidia-smi` of an instance into a folder of programs, if its type has GPUs of NVIDIA."""
    gpus = gpus_of(instance_type, identity)
    if not gpus:
        return
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "nvidia-smi"
    program.write_text(_PROGRAM.format(gpus=gpus))
    program.chmod(0o755)

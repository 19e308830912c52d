"""
Which GPUs there are, as nvidia-smi lists them.

The driver's own tool rather than its library: it is there wherever a driver is, and one that
hangs, as it does on a sick card, can be given up.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from fleetform.agents.protocol.messages import GpuReport

_DRIVER_FOLDERS = ("/usr/local/nvidia/bin", "/usr/lib/wsl/lib")
"""
Where the driver's tool lies when it is not on the search path.

Kubernetes hosts of Google and images that follow the NVIDIA container convention mount the driver at
the first, the Linux of Windows at the second. The agent's own PATH has neither: it is a fixed one.
"""

_TIMEOUT_SECONDS = 20
"""A cold driver without persistence mode takes about 2 s a card to initialise."""

_QUERY = ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")

_MIB = 1 << 20


def present() -> bool:
    """Tell whether asking takes time at all."""
    return _find_tool() is not None


def detect() -> tuple[GpuReport, ...]:
    """List the host's GPUs by index; none where there is no driver or it does not answer."""
    path = _find_tool()
    if path is None:
        return ()
    try:
        output = subprocess.run(
            [path, *_QUERY],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse(output)


def _find_tool() -> str | None:
    searched = (os.environ.get("PATH", os.defpath), *_DRIVER_FOLDERS)
    return shutil.which("nvidia-smi", path=os.pathsep.join(searched))


def parse(output: str) -> tuple[GpuReport, ...]:
    """
    Read lines of `index, uuid, name, MiB`.

    A card that has failed shows as `[Unknown Error]` or `[N/A]` in place of numbers, and a lost
    driver as a sentence: such lines are no GPU that could be allotted.
    """
    found = []
    for line in output.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and fields[0].isdigit() and fields[3].isdigit():
            index, uuid, name, mib = fields
            found.append(GpuReport(int(index), uuid, name, int(mib) * _MIB))
    return tuple(sorted(found, key=lambda gpu: gpu.index))

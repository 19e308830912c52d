"""
Which GPUs there are, as nvidia-smi lists them.

The driver's own tool rather than its library: it is there wherever a driver is, and one that
hangs, as it does on a sick card, can be given up.
"""

from __future__ import annotations

import shutil
import subprocess

from fleetform.agents.protocol.messages import GpuReport

_TIMEOUT_SECONDS = 20
"""A cold driver without persistence mode takes about 2 s a card to initialise."""

_QUERY = ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")

_MIB = 1 << 20


def present() -> bool:
    """Tell whether asking takes time at all."""
    return shutil.which("nvidia-smi") is not None


def detect() -> tuple[GpuReport, ...]:
    """List the host's GPUs by index; none where there is no driver or it does not answer."""
    path = shutil.which("nvidia-smi")
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

"""
Which GPUs there are, as nvidia-smi lists them.

The driver's own tool rather than its library: it is there wherever a driver is, and one that
hangs, as it does on a sick card, can be given up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from fleetform.agents.protocol.host_report import GpuReport

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

_stuck: list[subprocess.Popen[str]] = []
"""Tools that were killed after a timeout and may not have ended."""


def present() -> bool:
    """Tell whether asking takes time at all."""
    return _find_tool() is not None


def detect() -> tuple[GpuReport, ...]:
    """List the host's GPUs by index; none where there is no driver or it does not answer."""
    output = ask(_QUERY)
    return () if output is None else parse(output)


def ask(query: Sequence[str]) -> str | None:
    """
    Return what the driver's tool prints; None where there is none or it does not answer in time.

    A tool that waits for a sick card cannot be killed, so it is not waited for, and no second one is
    started beside it.
    """
    path = _find_tool()
    if path is None:
        return None
    _stuck[:] = [one for one in _stuck if one.poll() is None]
    if _stuck:
        return None
    try:
        tool = subprocess.Popen(
            [path, *query],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        )
    except OSError:
        return None
    try:
        output, _ = tool.communicate(timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        tool.kill()
        assert tool.stdout is not None
        tool.stdout.close()
        _stuck.append(tool)
        return None
    return output


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

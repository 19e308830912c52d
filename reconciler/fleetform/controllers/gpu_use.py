"""Asks a host with GPUs which of them programs outside fleetform use, and has changes written down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from fleetform.agents.protocol.host_report import GpuProcess
from fleetform.model.ports import LedgerUnavailable
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import Host

GPU_PROCESSES_SECONDS = 30.0
"""
Pause between two questions to a host with GPUs: who uses them outside fleetform.

A change is known within a minute: the agent asks the driver at most every 10 s. Hosts without GPUs
are never asked.
"""

GpuUse = Mapping[str, GpuProcess | None]
"""The process that uses a GPU, by the uuid of the GPU."""


async def watch_gpus(
    host: Host, *, note: Callable[[GpuUse], Awaitable[None]], lost: Callable[[str], None]
) -> None:
    """
    Watch which GPUs become used outside fleetform, or free again, while the session lasts.

    `lost` is called with a sentence about GPUs that the driver no longer reports.
    """
    gpus = [gpu for gpu in host.seen.report.gpus if not gpu.is_declared]
    known = {gpu.uuid: gpu.used_by for gpu in gpus}
    names = {gpu.uuid: f"{gpu.index} ({gpu.name})" for gpu in gpus}
    missing: set[str] = set()
    while known:
        await asyncio.sleep(GPU_PROCESSES_SECONDS)
        try:
            found = await host.gpu_processes()
        except ProviderError:
            return  # The connection is lost, and the next one begins with a report.
        # Twice in a row: the driver may be asked while it restarts.
        missing, before = known.keys() - found.keys(), missing
        if gone := [uuid for uuid in known if uuid in missing & before]:
            lost(_lost([names[uuid] for uuid in gone]))
            known = {uuid: use for uuid, use in known.items() if uuid not in gone}
        found = {uuid: use for uuid, use in found.items() if uuid in known}
        if found.items() <= known.items():
            continue
        # Not written down, it is news again the next time.
        with contextlib.suppress(LedgerUnavailable):
            await note(found)
            known.update(found)


def _lost(names: Sequence[str]) -> str:
    is_one = len(names) == 1
    return (
        f"{'GPU' if is_one else 'GPUs'} {', '.join(names)} {'is' if is_one else 'are'} lost:"
        f" the driver no longer reports {'it' if is_one else 'them'}"
    )

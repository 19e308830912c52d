"""The report of a host: all probes together."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

from fleetform.agents.host import accounts, probes
from fleetform.agents.protocol.host_report import GpuReport, HostReport


def report(root: str, limits: Sequence[str], gpus: Sequence[GpuReport]) -> HostReport:
    """
    Measure now; takes a millisecond.

    `limits` and `gpus` are given: trying the first changes the host for a moment, and asking for
    the second may take seconds.
    """
    machine = os.uname()
    ram = probes.measure_memory()
    room = probes.measure_disk(root)
    # Of no use to an agent that starts all jobs as its own account.
    names, are_all = accounts.listed() if os.geteuid() == 0 else ((), False)
    return HostReport(
        hostname=machine.nodename,
        cpu_millicores=probes.cpu_millicores(),
        memory_bytes=ram.total,
        disk_bytes=room.total,
        disk_free_bytes=room.free,
        memory_free_bytes=ram.free,
        load_1m_milli=probes.load_1m_milli(),
        gpus=tuple(gpus),
        python=platform.python_version(),
        kernel=machine.release,
        addresses=probes.addresses(),
        limits=tuple(limits),
        account=accounts.own_name(),
        is_root=os.geteuid() == 0,
        accounts=names,
        accounts_are_all=are_all,
    )

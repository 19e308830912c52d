"""
Find the processes that use a GPU outside fleetform, as nvidia-smi lists them.

Jobs of every environment on the host are left out. The controller allots no GPU that such a process
uses; the agent only reports it.
"""

from __future__ import annotations

import os
import pwd

from fleetform.agents.host import gpus, leftovers, processes
from fleetform.agents.protocol.host_report import GpuProcess

_QUERY = ("--query-compute-apps=gpu_uuid,pid,process_name", "--format=csv,noheader")

_MPS_SERVER = "nvidia-cuda-mps-server"
"""It works for its clients, which are listed themselves: one that serves a job is no other user."""


def find() -> dict[str, GpuProcess] | None:
    """Return the process by the uuid of its GPU; None where the driver does not answer."""
    output = gpus.ask(_QUERY)
    return None if output is None else parse(output)


def parse(output: str) -> dict[str, GpuProcess]:
    """
    Read lines of `uuid, pid, program`; of several processes on a GPU the one with the lowest pid.

    The driver may list a process that has ended, and other lines are its complaints.
    """
    found: dict[str, GpuProcess] = {}
    for line in output.splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if len(fields) != 3 or not fields[1].isdigit():
            continue
        uuid, pid, program = fields[0], int(fields[1]), os.path.basename(fields[2])
        if uuid in found and found[uuid].pid < pid:
            continue
        if program != _MPS_SERVER and _runs(pid) and not leftovers.is_of_any_job(pid):
            found[uuid] = GpuProcess(pid, _user(pid), program or "unknown")
    return found


def _runs(pid: int) -> bool:
    """Tell whether the process exists, also where /proc hides processes of other accounts."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return processes.state(pid) not in {"Z", "X"}


def _user(pid: int) -> str:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return "unknown"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

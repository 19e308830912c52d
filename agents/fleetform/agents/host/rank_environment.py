"""
What jobs on several nodes find for programs that start processes on other nodes, such as `mpirun`.

Variables tell each known program to use the launcher of `job_programs`, and to use the network whose
addresses the nodes have.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import ipaddress
import pkgutil
import socket
import struct
from collections.abc import Mapping

from fleetform.agents.host import job_programs, layout

_PROGRAM = "fleetform-rsh"
_MODULE = "rank_launcher.py"

# linux/sockios.h
_SIOCGIFADDR, _SIOCGIFNETMASK = 0x8915, 0x891B


def variables(env: Mapping[str, str]) -> dict[str, str]:
    """
    Return what a job on several nodes has besides; its document may set each of them otherwise.

    `env` is the job's own. The launcher is named without its folder, which is another one on each
    host: `mpirun` hands its settings on to its daemons, which look for the launcher too. `path` has it.
    """
    found = {
        "FLEETFORM_RSH": _PROGRAM,
        # Open MPI 4; a tree of launches would need each node to reach each other one so.
        "OMPI_MCA_plm_rsh_agent": _PROGRAM,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        # Open MPI 5.
        "PRTE_MCA_plm_ssh_agent": _PROGRAM,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        # MPICH and its kin, and Intel MPI.
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": _PROGRAM,
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": _PROGRAM,
    }
    network = _network(_own_address(env))
    if network:
        # Otherwise each node is tried at each of its addresses, such as those of bridges.
        for name in ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"):  # fmt: skip
            found[name] = network
    return found


def path(searched: str, root: str, *, is_shared: bool = False) -> str:
    """
    Return a search path with the launcher's folder as its last one.

    Raises:
        OSError: The launcher cannot be placed below `root`, the agent's folder, absolute; `is_shared`:
            a folder that all accounts can enter.
    """
    return f"{searched}:{place(root, is_shared=is_shared)}"


def _own_address(env: Mapping[str, str]) -> str:
    addresses = env.get("FLEETFORM_NODES_IPS", "").split("\n")
    rank = env.get("FLEETFORM_NODE_RANK", "")
    return addresses[int(rank)] if rank.isdecimal() and int(rank) < len(addresses) else ""


def _network(address: str) -> str:
    """Return the network of one of this host's addresses, such as 10.0.0.0/24; empty where none is known."""
    with contextlib.suppress(ValueError, OSError):
        if ipaddress.IPv4Address(address).is_loopback:
            return ""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):  # An interface without an address.
                    if _ask(any_socket, name, _SIOCGIFADDR) == address:
                        mask = _ask(any_socket, name, _SIOCGIFNETMASK)
                        return str(ipaddress.IPv4Network(f"{address}/{mask}", strict=False))
    return ""


def _ask(any_socket: socket.socket, interface: str, question: int) -> str:
    # struct ifreq (netdevice(7)): a name, and an address of the family AF_INET.
    request = struct.pack("16s24x", interface.encode())
    return socket.inet_ntoa(fcntl.ioctl(any_socket.fileno(), question, request)[20:24])


def place(root: str, *, is_shared: bool = False) -> str:
    """Return the folder of the launcher below `root`, made unless it is there."""
    return job_programs.place(f"{root}/{layout.LAUNCHER}", _files(), is_shared=is_shared)


@functools.lru_cache(maxsize=1)
def _files() -> Mapping[str, bytes]:
    data = pkgutil.get_data(__package__ or "", _MODULE)
    assert data is not None, _MODULE
    return {_MODULE: data, _PROGRAM: job_programs.python_script(f'"${{0%/*}}/{_MODULE}"')}

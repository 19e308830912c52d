"""
What a host has: the answer to a probe, as values. Standard library only, Python 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuProcess:
    """A process that uses a GPU and is of no job of fleetform; `user` is `unknown` if hidden."""

    pid: int
    user: str
    program: str


DECLARED_GPU = "declared-"
"""Begins the uuid of a GPU that a fleet declares, before its index; no driver lists it."""


@dataclass(frozen=True)
class GpuReport:
    """
    One GPU; `index` is what CUDA counts, `uuid` what is allotted.

    `used_by` is the process with the lowest pid of those that use it outside fleetform.
    """

    index: int
    uuid: str
    name: str
    memory_bytes: int
    vendor: str = "nvidia"
    used_by: GpuProcess | None = None

    @property
    def is_declared(self) -> bool:
        """Whether a fleet declares it, in place of the GPUs that a driver lists."""
        return self.uuid.startswith(DECLARED_GPU)


@dataclass(frozen=True)
class HostReport:
    """What a host has. CPU in millicores, sizes in bytes."""

    hostname: str
    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int
    disk_free_bytes: int
    memory_free_bytes: int
    load_1m_milli: int
    gpus: tuple[GpuReport, ...]
    python: str
    kernel: str
    addresses: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    """How memory limits are enforced, best first: `cgroup2`, `cgroup1`, `poll`."""
    account: str = ""
    """The account that the agent runs as; empty: it is of a release that does not say."""
    is_root: bool = False
    accounts: tuple[str, ...] = ()
    """Names of the accounts of the host, where the agent is root."""
    accounts_are_all: bool = False
    """The host has no others, such as those of a directory service."""

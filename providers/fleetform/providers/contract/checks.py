"""
What a provider reads of a host before or after it is set up, without changing anything there.

Facts only: `model.host_check` decides which of them are problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fleetform.providers.contract.hosts import InstanceRequest


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """
    The file system for the agent's files.

    `path` is the folder, and `nearest` the part of it that exists. `mount` is where the file system
    begins, `file_system` its type as in /proc/mounts, `source` its device or server. `free_files`
    of `files` inodes are free; some file systems report 0 of 0. None: it cannot be read.
    """

    path: str
    nearest: str
    mount: str
    file_system: str
    source: str
    is_folder: bool
    is_writable: bool
    is_read_only: bool
    is_noexec: bool
    free_bytes: int | None
    free_files: int | None
    files: int | None


@dataclass(frozen=True, slots=True)
class LogoutFacts:
    """
    What systemd does to the account when its last session ends.

    `kills_processes`: it ends the processes of the session. `removes_ipc`: it removes shared
    memory, unless the account lingers. None: systemd does not say.
    """

    has_systemd: bool
    lingers: bool
    kills_processes: bool | None
    removes_ipc: bool | None


@dataclass(frozen=True, slots=True)
class GpuUser:
    """A process that uses a GPU and is no job of fleetform."""

    pid: int
    user: str
    program: str


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU that the driver lists."""

    index: int
    uuid: str


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """
    NVIDIA GPUs.

    `cards` are on the PCI bus, `names` has one for each that the driver lists. `tool` is the path
    of nvidia-smi, or empty. `complaint` is what it printed in place of a GPU. `users` are sorted by
    pid, and `devices` are in the order of `names`.
    """

    cards: int
    tool: str
    driver: str
    names: tuple[str, ...]
    complaint: str
    users: tuple[GpuUser, ...] = ()
    devices: tuple[GpuDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """One agent of the account; `bundle` is the file name that it runs from, where it runs."""

    uid: str
    name: str
    fleet: str
    environment_uid: str
    is_running: bool
    bundle: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """
    What `providers.host_facts` has read: bytes, milliseconds.

    `memory_limit` is `cgroup2`, `cgroup1` or `count`: how the agent limits the memory of jobs.
    `service` is what would keep the agent running: `system` or `user` (a unit of systemd), `linger` (a
    unit, if systemd lets the account linger), `cron` or `daemon` (nothing after a reboot).
    `has_sudo`: the account is not root and `sudo -n` works. `now_ms` is the host's clock when the
    reading began; it took `took_ms`. `person` is the account of the person who asks, and `has_person`
    tells whether the host has one of that name.
    """

    now_ms: int
    took_ms: int
    hostname: str
    machine_id: str
    boot_id: str
    account: str
    home: str
    is_root: bool
    has_sudo: bool
    person: str
    has_person: bool
    python: str
    python_version: str
    system: str
    kernel: str
    machine: str
    cpus: int
    memory_bytes: int
    open_files_max: int
    memory_limit: str
    service: str
    folder: FolderFacts
    logout: LogoutFacts
    gpu: GpuFacts
    agents: tuple[AgentFacts, ...]

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> HostFacts:
        """
        Read the answer of `providers.host_facts`.

        Raises:
            ValueError: It has other fields.
        """
        try:
            return cls(
                **{
                    **fields,
                    "folder": FolderFacts(**fields["folder"]),
                    "logout": LogoutFacts(**fields["logout"]),
                    "gpu": _gpu(fields["gpu"]),
                    "agents": tuple(AgentFacts(**one) for one in fields["agents"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the facts of the host are not complete: {error}") from error


def _gpu(fields: Mapping[str, Any]) -> GpuFacts:
    users = tuple(GpuUser(**one) for one in fields["users"])
    devices = tuple(GpuDevice(**one) for one in fields["devices"])
    read = {"names": tuple(fields["names"]), "users": users, "devices": devices}
    return GpuFacts(**{**fields, **read})


@dataclass(frozen=True, slots=True)
class HostChecked:
    """
    A host that was reached.

    `where` says how, such as `root@10.0.0.3 port 22`; empty: it is this machine. `facts` is None where
    nothing could be read; then `problem` says why, and `advice` what to do. `asked_at_ms` and
    `answered_at_ms` are the times of this machine around the reading of `facts`. `bundle` is the
    file name of the agent that this release installs.
    """

    where: str
    facts: HostFacts | None
    problem: str = ""
    advice: str = ""
    asked_at_ms: int = 0
    answered_at_ms: int = 0
    bundle: str = ""


class HostChecker(Protocol):
    """A provider that can say what a host is like."""

    async def check(self, request: InstanceRequest) -> HostChecked:
        """
        Read what the host of an instance is like; nothing is changed there.

        The instance need not exist. Each call opens a connection of its own.

        Raises:
            ProviderError: The host cannot be reached, or refuses to sign in.
        """

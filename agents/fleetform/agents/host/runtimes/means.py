"""What the runtimes of an agent share: the spawner of supervisors, and the directories of jobs."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from fleetform.agents.host import layout
from fleetform.agents.host.forks import Forks
from fleetform.agents.host.job_dir_pool import JobDirPool
from fleetform.agents.host.runtimes import process_directory
from fleetform.agents.host.sweeper import Sweeper


@dataclass(frozen=True)
class Means:
    """One of each: two pools would give out one directory twice."""

    host: process_directory.Host
    forks: Forks
    sweeper: Sweeper


def make_means(
    root: str, channel: socket.socket, *, spawner_pid: int, mounts_obstacle: str, memory_limit: str
) -> Means:
    """`channel` leads to the spawner; see `process_directory.Host` for the rest."""
    skeletons = JobDirPool(root)
    return Means(
        process_directory.Host(root, skeletons, mounts_obstacle, memory_limit),
        Forks(channel, spawner_pid),
        Sweeper(skeletons, layout.accounts_folder(root)),
    )

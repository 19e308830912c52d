"""
Where things lie below an agent's root, and in the directory of one job.

A job's directory says all there is to know of it without any process being asked: that is
what lets the agent end, crash and be replaced while jobs run. Names only; who writes each
file, and when, stands beside it.
"""

from __future__ import annotations

import os
import re
import zlib

# -- below the root -----------------------------------------------------------------------

AGENT_SOCKET = "agent.sock"
NOTICE_SOCKET = "notice.sock"
"""Datagrams from supervisors: a job has written output, or is being cleaned up."""

CONTACT = "contact"
"""When the controller last answered; written by the agent, read by supervisors."""

SPOT = "spot"
"""There since the first job that said that the host is a spot instance."""

AGENT_LOCK = "lock"
"""Held by the one daemon of this root as long as it lives."""

SPAWNER_LOCK = "spawner.lock"
"""Held by the spawner, and by each supervisor until it holds the lock of its own job."""

AGENT_PID = "agent.pid"
AGENT_LOG = "agent.log"
JOURNAL = "journal"
JOBS = "jobs"
BLOBS = "blobs"
SPARE = "spare"
TRASH = "trash"
SLURM = "slurm"
"""Stand-ins for Slurm's commands, in a folder named by their content; made when a job asks for them."""

LAUNCHER = "launcher"
"""What starts commands in other ranks, in a folder named by its content; made for the first such job."""

SHARED = "/var/lib/fleetform"
"""
What other accounts than root's may reach, where the agent is root: its own root is closed to them. It is
where all accounts may pass through, as on every host: hier(7).
"""


def accounts_folder(root: str) -> str:
    """
    Return the folder of the working directories that the agent of a root makes for other accounts.

    Several agents of one host share `SHARED`. `providers.ssh.host_program` names it in the same way.
    """
    # Not a longer digest: its library would be mapped into each supervisor.
    number = zlib.crc32(os.fsencode(root))
    return f"{SHARED}/{JOBS}/{os.path.basename(root)}-{number:08x}"


# -- in a job's directory -----------------------------------------------------------------

LAUNCH = "launch"
"""
What the supervisor is to do; written at prepare. The supervisor locks this file for as long as
it lives and renames it to `started`, which only one can do.
"""

STARTED = "started"
"""
The same file, once the job has been started; its second line is the supervisor's pid. Its time of
modification is the start of the job by the clock since boot, not the date: a date can be set back.
"""

RESULT = "result"
"""A slot of fixed size, allocated at prepare: a full disk must not lose an outcome."""

CONTROL = "control"
"""A FIFO that takes requests to stop; made at prepare."""

OUTPUT = "log"
WORK = "work"
TEMPORARY = "tmp"
SCRIPT = "script"
"""Only where the commands are too long for an argument."""

HOSTFILE = "hostfile"
"""The nodes of a run on several, as `mpirun --hostfile` reads them; written at prepare."""

NOTICE_FROM_JOB = f"../../{NOTICE_SOCKET}"
"""Relative, since a socket's address holds 107 bytes and a root's path may be longer."""

CONTACT_FROM_JOB = f"../../{CONTACT}"

JOB_UID_VARIABLE = "FLEETFORM_JOB_UID"
"""In the environment of every process of a job: how they are found without a supervisor."""

_JOB_UID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")


def is_job_uid(text: str) -> bool:
    """Tell whether a job's uid can name its directory and nothing else."""
    return _JOB_UID.match(text) is not None

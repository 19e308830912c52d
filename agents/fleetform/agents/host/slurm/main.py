"""
The entry of all stand-ins: which of Slurm's commands was called, and what it returns.

A command that would ask Slurm's controller cannot work inside a job: it ends with an error that
names the way that fleetform has for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fleetform.agents.host.slurm import scontrol, srun

INSTEAD = {
    "sacct": "`fleetform ps` and `fleetform history` list runs, outside of the job",
    "salloc": "a job already has its hosts; declare another task for others",
    "sattach": "`fleetform logs RUN` follows a run, outside of the job",
    "sbatch": "declare another task, with `depends_on:` if it waits for runs, or `retry:` to run this one again",
    "sbcast": "declare the file in `files:` of the task",
    "scancel": "`fleetform stop RUN` ends a run, outside of the job",
    "sinfo": "`fleetform fleet list` lists hosts, outside of the job",
    "squeue": "`fleetform ps` lists runs, outside of the job",
}
"""Commands that have no stand-in, and what to do instead."""

COMMANDS = ("scontrol", "srun", *INSTEAD)


def main(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names; returns its exit code."""
    name, *rest = arguments
    if name == "srun":
        return srun.main(rest)
    if name == "scontrol":
        return scontrol.main(rest)
    sys.stderr.write(
        f"{name}: error: jobs of fleetform do not reach a Slurm controller. Instead: {INSTEAD[name]}.\n"
    )
    return 1

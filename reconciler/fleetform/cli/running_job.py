"""
Finds the running job that a command enters: one rank of one run, on its host.

`exec`, `ssh`, `proxy` and `shell` use it, so that all of them refuse a run that is not running in the same words.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.cli.failure import Refused
from fleetform.cli.selection import select_runs, some
from fleetform.model.run_state import FINAL, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetform.model.instance import Instance
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.model.run import Job
__all__ = ["RunningJob", "find_job", "require_running"]


@dataclass(frozen=True, slots=True)
class RunningJob:
    """`ranks` is how many the run has."""

    history: RunHistory
    job: Job
    instance: Instance
    ranks: int


def find_job(
    reader: Reader, run: str, *, rank: int | None = None, node: str | None = None
) -> RunningJob:
    """
    Find the job of a rank, or of the rank on a host; rank 0 where neither is given.

    Raises:
        Refused: The run, or this rank of it, does not run.
    """
    history = require_running(select_runs(reader, [run]), run)
    jobs = history.attempts[-1].jobs
    job = _chosen(history, jobs, rank, node)
    instances = {one.uid: one for one in reader.read_book([history.run.uid]).instances}
    return RunningJob(history, job, _host_of(history, job, instances), len(jobs))


def require_running(histories: Sequence[RunHistory], typed: str) -> RunHistory:
    """Return the one run that was typed; raises Refused where it is not one, or does not run."""
    if len(histories) > 1:
        names = [one.run.name for one in histories if one.run.state is RunState.RUNNING]
        raise Refused(
            f"`{typed}` means {len(histories)} runs, and a command runs in one",
            advice=f"name one that is running: {some(names)}"
            if names
            else "none of them is running",
        )
    history = histories[0]
    name, state = history.run.name, history.run.state
    if state in FINAL:
        raise Refused(
            f"`{name}` is not running: it is {state}",
            advice=f"`fleetform logs {shlex.quote(name)}` prints its output, `fleetform rerun"
            f" {shlex.quote(name)}` runs it again",
        )
    if state is RunState.UNKNOWN and not history.attempts:
        raise Refused(
            f"`{name}` is unknown: no host is known to have it",
            advice=f"`fleetform why {shlex.quote(name)}` says more",
        )
    # That the controller did not reach a host, a moment ago, is no proof that it cannot be reached.
    if state not in {RunState.RUNNING, RunState.UNKNOWN} or not history.attempts:
        raise Refused(
            f"`{name}` is not running yet: it is {state}",
            advice=f"`fleetform why {shlex.quote(name)}` shows why it waits",
        )
    return history


def _chosen(history: RunHistory, jobs: Sequence[Job], rank: int | None, node: str | None) -> Job:
    name = history.run.name
    if node is not None:
        hosts = {history.host_names.get(job.instance_uid, ""): job for job in jobs}
        if node not in hosts:
            raise Refused(
                f"`{name}` does not run on host `{node}`",
                advice=f"it runs on {some(sorted(filter(None, hosts)))}",
            )
        return hosts[node]
    found = next((job for job in jobs if job.key.rank == (rank or 0)), None)
    if found is None:
        raise Refused(f"there is no rank {rank}", advice=f"the ranks are 0 to {len(jobs) - 1}")
    return found


def _host_of(history: RunHistory, job: Job, instances: Mapping[str, Instance]) -> Instance:
    from fleetform.agents.protocol.states import JobState

    if job.state is not JobState.RUNNING:
        raise Refused(
            f"rank {job.key.rank} of `{history.run.name}` is not running: it is {job.state.value}",
            advice=f"`fleetform why {shlex.quote(history.run.name)}` shows its state",
        )
    if job.instance_uid not in instances:
        host = history.host_names.get(job.instance_uid, job.instance_uid)
        raise Refused(
            f"host {host} of `{history.run.name}` does not exist any more",
            advice="`fleetform apply` records what became of its jobs",
        )
    return instances[job.instance_uid]

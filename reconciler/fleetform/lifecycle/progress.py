"""
What happens next to a run, from its rows alone.

`advance` reads the rows of the latest attempt and never the event that changed them, so that it
may be asked at any time and after any crash. It never guesses: a job is over when its row says
so, which takes the host's record or another proof of death, and silence is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.lifecycle.ending import (
    MASTER_DONE,
    PREPARE_TIMEOUT,
    START_TIMEOUT,
    culprit,
    ended_badly,
    exit_summary,
    judge_end,
    stop_wish,
)
from fleetform.lifecycle.node_order import is_done_by_master, is_second
from fleetform.model import figures
from fleetform.model.decision import AllPrepared, Next, StopGang, Wait
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import FINAL, Attempt, AttemptState, Job, Run, RunState, RunUid

__all__ = [
    "FIRST_BOOT_MS",
    "PREPARE_TIMEOUT_MS",
    "START_TIMEOUT_MS",
    "Rows",
    "advance",
    "kept_by_silence",
]


PREPARE_TIMEOUT_MS = 600_000
"""How long a gang's hosts may take to prepare: files of some GB over a slow link take minutes."""

START_TIMEOUT_MS = 60_000
"""How long after the commit point a rank may be missing: a start is one small message."""

FIRST_BOOT_MS = 1_200_000
"""How long an instance may take to answer for the first time: those without a hypervisor boot for up to a quarter of an hour."""

_COMMITTED = frozenset({AttemptState.STARTING, AttemptState.RUNNING})


def advance(
    run: Run,
    attempt: Attempt,
    *,
    now_ms: int,
    start_timeout_ms: int = START_TIMEOUT_MS,
    prepare_timeout_ms: int = PREPARE_TIMEOUT_MS,
) -> Next:
    """
    Decide what happens next to `run`, whose latest attempt is `attempt`.

    Returns:
        `StopGang` only while some job has not been told to stop, `Requeue` and `Finish` only
        once all jobs have ended, `AllPrepared` only before the commit point: carried out, each
        leads to rows from which it is not decided again.
    """
    if run.state in FINAL or not attempt.jobs:
        return Wait()
    living = [job for job in attempt.jobs if job.state is not JobState.FINISHED]
    if not living:
        return judge_end(run, attempt, now_ms=now_ms)
    if all(job.stop_wanted for job in living):
        return Wait()
    stop = _reason_to_stop(run, attempt, now_ms, start_timeout_ms, prepare_timeout_ms)
    if stop is not None:
        return stop
    if attempt.state is AttemptState.RESERVED and all(
        job.state is JobState.PREPARED for job in attempt.jobs
    ):
        return AllPrepared()
    return Wait()


def _reason_to_stop(
    run: Run, attempt: Attempt, now_ms: int, start_timeout_ms: int, prepare_timeout_ms: int
) -> StopGang | None:
    # Also before it has a place: a run that waited for ever would keep what depends on it waiting.
    if wish := stop_wish(run):
        return StopGang(Cause.STOPPED.value, wish)
    if is_done_by_master(run.template, attempt):
        return StopGang(MASTER_DONE, "rank 0 is done, and `stop_criteria` is master-done")
    if any(job.state is JobState.FINISHED and ended_badly(job) for job in attempt.jobs):
        return _broken(run, attempt)
    unknown = [job for job in attempt.jobs if job.state is JobState.UNKNOWN]
    if unknown and len(attempt.jobs) > 1:
        # Its end may never be proven, and the others wait for it meanwhile.
        return StopGang(Cause.LOST.value, f"rank {unknown[0].key.rank}: {unknown[0].message}")
    if attempt.state is AttemptState.RESERVED:
        late = [job for job in attempt.jobs if job.state is not JobState.PREPARED]
        if _is_over(attempt.reserved_at_ms, prepare_timeout_ms, now_ms):
            return StopGang(PREPARE_TIMEOUT, _late("prepared", late, prepare_timeout_ms))
    if attempt.state in _COMMITTED and len(attempt.jobs) > 1:
        return _start_late(run, attempt, now_ms, start_timeout_ms)
    return None


def _start_late(run: Run, attempt: Attempt, now_ms: int, timeout_ms: int) -> StopGang | None:
    """Give up a gang that misses a rank; ranks that start after others have twice the time."""
    late = [job for job in attempt.jobs if job.state is JobState.STARTING]
    first = [job for job in late if not is_second(run.template, job)]
    for missing, limit_ms in ((first, timeout_ms), (late, 2 * timeout_ms)):
        if missing and _is_over(attempt.starting_at_ms, limit_ms, now_ms):
            return StopGang(START_TIMEOUT, _late("started", missing, limit_ms))
    return None


def _broken(run: Run, attempt: Attempt) -> StopGang:
    """A gang that has lost a rank is stopped whole: the others would wait for it for ever."""
    finished = tuple(job for job in attempt.jobs if job.state is JobState.FINISHED)
    job = culprit(finished) or next(job for job in finished if ended_badly(job))
    assert job.cause is not None, job.key
    return StopGang(job.cause.value, exit_summary(job, run.template))


def _is_over(since_ms: int | None, timeout_ms: int, now_ms: int) -> bool:
    """Tell whether a deadline has passed; one that was never set has not."""
    return since_ms is not None and now_ms - since_ms >= timeout_ms


def _late(verb: str, late: list[Job], timeout_ms: int) -> str:
    ranks = ", ".join(str(job.key.rank) for job in late[:5])
    more = f" and {len(late) - 5} more" if len(late) > 5 else ""
    noun = "rank" if len(late) == 1 else "ranks"
    return f"{noun} {ranks}{more} not {verb} within {figures.span(timeout_ms)}"


# Which runs get nowhere until a host that is silent answers, or one that does not exist yet is created or boots.
# Somebody who waits for runs must be told, and let go in the end: a host may never come back. That
# a run is kept proves nothing about it, and changes nothing: it goes on when the host does.

_COMES = frozenset(
    {
        InstanceState.READY,
        InstanceState.PROVISIONING,
        InstanceState.RECOVERING,
        InstanceState.SUSPECT,
    }
)
"""Hosts on which a run may still find a place."""


class Rows(Protocol):
    """A book, or the manager's copy of one."""

    @property
    def runs(self) -> Mapping[RunUid, Run]: ...
    @property
    def attempts(self) -> Mapping[RunUid, Attempt]: ...
    @property
    def instances(self) -> Iterable[Instance]: ...


def kept_by_silence(rows: Rows) -> dict[str, tuple[str, ...]]:
    """
    Return the names of the silent hosts, sorted, by the name of each run that waits for them.

    Silent are hosts that are unreachable, instances that have not answered since their creation, and those whose creation failed.
    A run waits for a host that is silent when it is on it, when no other host of the fleets that
    it may use could take it, or when it depends on a run that waits so.
    """
    silent = [one for one in rows.instances if _is_silent(one)]
    if not silent:
        return {}
    kept = {
        run.name: hosts
        for uid, run in rows.runs.items()
        if (hosts := _hosts_of(run, rows.attempts.get(uid), rows.instances, silent))
    }
    _add_dependants(rows.runs.values(), kept)
    return kept


def _hosts_of(
    run: Run, attempt: Attempt | None, instances: Iterable[Instance], silent: list[Instance]
) -> tuple[str, ...]:
    names = {one.uid: one.name for one in silent}
    placed = [job.instance_uid for job in attempt.jobs if job.instance_uid] if attempt else []
    if placed:
        return tuple(sorted({names[uid] for uid in placed if uid in names}))
    if run.state is RunState.UNKNOWN:
        return ()
    fleets = run.template.fleets
    usable = [one for one in instances if not fleets or one.fleet in fleets]
    # Before `pending` has met what it depends on, where it may run is not the question.
    if run.state is RunState.PENDING or any(_may_take(one, run) for one in usable):
        return ()
    return tuple(sorted(one.name for one in usable if one.uid in names))


def _is_silent(host: Instance) -> bool:
    is_booting = host.is_bought and host.is_joining and host.is_created
    is_unreachable = host.state is InstanceState.UNREACHABLE
    return is_unreachable or is_booting or host.has_failed or host.is_refused


def _may_take(host: Instance, run: Run) -> bool:
    """Tell whether a run may find a place on a host, unless what the host has said of itself is too little."""
    needs = run.template.requirement
    is_too_small = host.state is InstanceState.READY and (
        (needs.cpu_min_millicores or 0) > host.cpu_millicores
        or (needs.memory_min_bytes or 0) > host.memory_bytes
        or (needs.gpu is not None and needs.gpu.count_min > len(host.gpus))
    )
    return host.state in _COMES and not _is_silent(host) and not is_too_small


def _add_dependants(runs: Iterable[Run], kept: dict[str, tuple[str, ...]]) -> None:
    """Add what waits for a run that is kept; dependencies have no cycle, so this ends."""
    parents = {run.name: run.template.parent for run in runs}
    waiting = [run for run in runs if run.state is RunState.PENDING and run.name not in kept]
    found = True
    while found:
        found = False
        for run in waiting:
            if run.name in kept:
                continue
            wanted = {one.run for one in run.template.depends_on}
            upstream = [
                hosts
                for name, hosts in kept.items()
                if name in wanted or parents.get(name) in wanted
            ]
            if upstream:
                kept[run.name] = tuple(sorted({host for hosts in upstream for host in hosts}))
                found = True

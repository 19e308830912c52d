"""
Runs as people see them: the rows of `ps`.

CLI, `--format json` and API print from `RunRow`. A sweep or an array is as many rows as it has
elements; `run_list` folds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model import figures
from fleetform.model.instance import InstanceState
from fleetform.model.run import (
    FINAL,
    Attempt,
    GpuRequirement,
    Job,
    Requirement,
    Run,
    RunState,
    RunUid,
)
from fleetform.model.run_state import Outdated
from fleetform.spec.names import natural_order
from fleetform.views.lineage import stale_text
from fleetform.views.moments import age
from fleetform.views.table import Cell, Column, Table, make_table, row_of

if TYPE_CHECKING:
    from fleetform.agents.protocol.keys import JobKey
    from fleetform.model.decision import Waiting
    from fleetform.model.instance import Instance
    from fleetform.model.ports import RunHistory


TONES: Mapping[RunState, str] = {
    RunState.PENDING: "dim",
    RunState.SUBMITTED: "warn",
    RunState.PROVISIONING: "warn",
    RunState.PREPARING: "info",
    RunState.RUNNING: "info",
    RunState.FINISHING: "info",
    RunState.UNKNOWN: "bad",
    RunState.DONE: "good",
    RunState.FAILED: "bad",
    RunState.STOPPED: "warn",
    RunState.UNSCHEDULABLE: "bad",
    RunState.ABORTED: "bad",
}


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One reason why a run waits; `code` is stable."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """
    The work of one host for an attempt.

    `instance` is the name of the host, empty before the job has a host. `exit_code` and `signal` are
    null unless the job ended with one. Sizes are bytes, times are Unix milliseconds. `log_bytes` is
    the size of its output; while the job runs, of the output that has arrived.
    """

    rank: int
    state: str
    instance: str
    cause: str
    exit_code: int | None
    signal: int | None
    message: str
    cpu_millicores: int
    memory_bytes: int
    memory_limited: bool
    gpus: tuple[str, ...]
    started_at_ms: int | None
    finished_at_ms: int | None
    peak_memory_bytes: int | None
    cpu_time_ms: int | None
    log_bytes: int


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One try at a run, with its jobs sorted by rank."""

    number: int
    state: str
    cause: str
    message: str
    submitted_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    jobs: tuple[JobRow, ...]


@dataclass(frozen=True, slots=True)
class RunRow:
    """
    One run.

    `attempt` is the number of the latest attempt, 0 before the first. `instances` are the names of
    the hosts of that attempt. `duration_ms` is the time for which its attempts have run, without
    the pauses between them, which `pauses_ms` has. Both are by the clocks of its hosts, since the ledger may
    hear of an end hours later, and null before the run has started. If all hosts of the running jobs are silent, the duration
    ends when the last of them was heard, at `silent_since_ms`, which else is null. `exit_code` is that of the job that decided the result, and null
    unless that job exited. `waiting` has every reason why the run waits. `stop_requested` names who
    requested its end and why, and is empty if no person did. `stale` is true if the result is
    outdated: its inputs have changed since the run started. `stale_because` says how, and
    `stale_inputs` names the inputs that are results of other runs.
    """

    name: str
    uid: str
    type: str
    state: str
    attempt: int
    parent: str
    element: str
    priority: int
    nodes: int
    resources: str
    instances: tuple[str, ...]
    cause: str
    message: str
    exit_code: int | None
    submitted_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    duration_ms: int | None
    pauses_ms: int | None
    silent_since_ms: int | None
    waiting: tuple[WaitingRow, ...]
    stop_requested: str
    archived: bool
    commit: str
    stale: bool
    stale_because: str
    stale_inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with all its attempts, oldest first."""

    row: RunRow
    attempts: tuple[AttemptRow, ...]


def run_rows(
    histories: Iterable[RunHistory],
    *,
    instances: Iterable[Instance] = (),
    waiting: Mapping[RunUid, tuple[Waiting, ...]] | None = None,
    now_ms: int,
) -> tuple[RunRow, ...]:
    """
    Make the rows, in the order of `histories`.

    Args:
        histories: As the ledger reads them; the last attempt is the latest.
        instances: To name hosts; one that is gone has its name in the run's history.
        waiting: What the scheduler said last, if it was asked.
        now_ms: For durations of what still runs.
    """
    hosts = tuple(instances)
    names = {instance.uid: instance.name for instance in hosts}
    silent = _silent(hosts)
    reasons = waiting or {}
    # Thousands of runs that wait for the same share one tuple of reasons, and so one of rows.
    made: dict[int, tuple[WaitingRow, ...]] = {}
    return tuple(
        _row(
            history,
            _names_in(history, names),
            _reasons(reasons.get(history.run.uid, ()), made),
            silent,
            now_ms,
        )
        for history in histories
    )


def in_order(histories: Iterable[RunHistory]) -> list[RunHistory]:
    """Sort by name for people, `a[2]` before `a[10]`; what is archived comes last."""
    return sorted(histories, key=lambda each: (each.archived, natural_order(each.run.name)))


def run_detail(
    history: RunHistory,
    *,
    instances: Iterable[Instance] = (),
    waiting: Sequence[Waiting] = (),
    arrived: Mapping[JobKey, int] | None = None,
    now_ms: int,
) -> RunDetail:
    """
    Make the row of one run with those of its attempts.

    Args:
        history: As the ledger reads it.
        instances: To name hosts.
        waiting: What the scheduler said, if it was asked.
        arrived: Bytes of output by job; the ledger knows them from a job's end on.
        now_ms: For the duration of what still runs.
    """
    hosts = tuple(instances)
    names = _names_in(history, {instance.uid: instance.name for instance in hosts})
    return RunDetail(
        _row(history, names, _reasons(tuple(waiting), {}), _silent(hosts), now_ms),
        tuple(_attempt(attempt, names, arrived or {}) for attempt in history.attempts),
    )


def runs_table(rows: Iterable[RunRow], *, now_ms: int) -> Table:
    columns: tuple[Column[RunRow], ...] = (
        Column("NAME", lambda row: row.name),
        Column("STATE", state_cell),
        Column("AGE", lambda row: age(row.submitted_at_ms, now_ms), right=True),
        Column("DURATION", _duration, right=True),
        Column("TRY", lambda row: str(row.attempt) if row.attempt > 1 else "", True, True),
        Column("NODES", lambda row: str(row.nodes) if row.nodes > 1 else "", True, True),
        Column("RESOURCES", lambda row: row.resources, optional=True),
        Column("HOSTS", _hosts),
        Column("MESSAGE", row_message, optional=True),
    )
    return make_table(columns, rows)


def state_cell(row: RunRow) -> Cell:
    return Cell(row.state, TONES[RunState(row.state)])


def row_message(row: RunRow) -> str:
    """Say in one line why a run ended as it did, or what it waits for."""
    if row.message and (not row.waiting or row.state in FINAL):
        return row.message
    if row.stop_requested and row.state not in FINAL:
        return f"is asked to stop: {row.stop_requested}"
    if not row.waiting:
        return "archived" if row.archived else row.stale_because
    more = len(row.waiting) - 1
    return row.waiting[0].detail + (
        f" (and {figures.counted(more, 'more reason')})" if more else ""
    )


def requirement_text(requirement: Requirement) -> str:
    """Write what one job asks for: `4 CPUs, 16GB, 2 GPUs A100`; empty where nothing is said."""
    parts: list[str] = []
    if requirement.cpu_min_millicores is not None:
        parts.append(figures.cpus(requirement.cpu_min_millicores))
    if requirement.memory_min_bytes is not None:
        parts.append(figures.size(requirement.memory_min_bytes))
    if requirement.disk_min_bytes is not None:
        parts.append(f"{figures.size(requirement.disk_min_bytes)} disk")
    if requirement.gpu is not None and requirement.gpu.count_min:
        parts.append(_gpu_text(requirement.gpu))
    return ", ".join(parts)


def _gpu_text(gpu: GpuRequirement) -> str:
    words = [figures.counted(gpu.count_min, "GPU"), " or ".join(gpu.names) or gpu.vendor]
    if gpu.memory_min_bytes is not None:
        words.append(figures.size(gpu.memory_min_bytes))
    return " ".join(word for word in words if word)


def _names_in(history: RunHistory, names: Mapping[str, str]) -> Mapping[str, str]:
    """Add the hosts that are gone, where the run has been on one."""
    if not names:
        return history.host_names
    uids = {job.instance_uid for attempt in history.attempts for job in attempt.jobs}
    return names if uids <= names.keys() | {""} else {**history.host_names, **names}


def _row(
    history: RunHistory,
    names: Mapping[str, str],
    waiting: tuple[WaitingRow, ...],
    silent: Mapping[str, int],
    now_ms: int,
) -> RunRow:
    run = history.run
    silent_since_ms = _silent_since_ms(history, silent)
    span_ms = _span_ms(history, now_ms if silent_since_ms is None else silent_since_ms)
    pauses_ms = None if span_ms is None else min(span_ms, _pauses_ms(history.attempts))
    attempt = history.attempts[-1] if history.attempts else None
    stale = stale_text(history.outdated, history.stale if run.state in FINAL else Outdated.NO)
    return row_of(
        RunRow,
        run,
        run.template,
        history,
        resources=requirement_text(run.template.requirement),
        instances=_instances(attempt, names),
        exit_code=_exit_code(run, attempt),
        duration_ms=None if span_ms is None or pauses_ms is None else span_ms - pauses_ms,
        pauses_ms=pauses_ms,
        silent_since_ms=silent_since_ms,
        message=run.message or _silence(run, silent_since_ms, now_ms),
        waiting=waiting,
        stale=bool(stale),
        stale_because=stale,
        stale_inputs=tuple(name for name, _ in history.outdated),
    )


def _reasons(
    reasons: tuple[Waiting, ...], made: dict[int, tuple[WaitingRow, ...]]
) -> tuple[WaitingRow, ...]:
    known = made.get(id(reasons))
    if known is None:
        known = tuple(WaitingRow(reason.code, reason.detail) for reason in reasons)
        made[id(reasons)] = known
    return known


def _attempt(
    attempt: Attempt, names: Mapping[str, str], arrived: Mapping[JobKey, int]
) -> AttemptRow:
    jobs = tuple(_job(job, names, arrived.get(job.key, 0)) for job in attempt.jobs)
    return row_of(AttemptRow, attempt, jobs=jobs)


def _job(job: Job, names: Mapping[str, str], arrived_bytes: int) -> JobRow:
    return row_of(
        JobRow,
        job,
        rank=job.key.rank,
        instance=names.get(job.instance_uid, job.instance_uid),
        cause=job.cause.value if job.cause else "",
        log_bytes=max(job.log_bytes, arrived_bytes),
    )


def _instances(attempt: Attempt | None, names: Mapping[str, str]) -> tuple[str, ...]:
    if attempt is None:
        return ()
    return tuple(
        names.get(job.instance_uid, job.instance_uid) for job in attempt.jobs if job.instance_uid
    )


def _exit_code(run: Run, attempt: Attempt | None) -> int | None:
    """Return the exit code behind the run's end: the first that is not 0, else 0."""
    if attempt is None or run.state not in FINAL or run.cause != Cause.EXITED.value:
        return None
    codes = [job.exit_code for job in attempt.jobs if job.exit_code is not None]
    return next((code for code in codes if code), codes[0] if codes else None)


_SILENT = frozenset({InstanceState.RECOVERING, InstanceState.UNREACHABLE})


def _silent(instances: Iterable[Instance]) -> Mapping[str, int]:
    """Return when each silent host was heard last, by uid."""
    return {
        one.uid: one.seen_at_ms
        for one in instances
        if one.state in _SILENT and one.seen_at_ms is not None
    }


def _silent_since_ms(history: RunHistory, silent: Mapping[str, int]) -> int | None:
    """Say since when no host tells anything of the work of a run; None while one does."""
    if not silent or not history.attempts or history.run.finished_at_ms is not None:
        return None
    hosts = [
        job.instance_uid
        for job in history.attempts[-1].jobs
        if job.instance_uid and job.state is not JobState.FINISHED
    ]
    if not hosts or not silent.keys() >= set(hosts):
        return None
    return max(silent[uid] for uid in hosts)


def _silence(run: Run, silent_since_ms: int | None, now_ms: int) -> str:
    """Say that nothing is known of a run since its hosts were heard last; its state says the rest."""
    if silent_since_ms is None or run.state is RunState.UNKNOWN:
        return ""
    hosts = "its host has" if run.template.nodes == 1 else "its hosts have"
    return f"{hosts} been silent for {age(silent_since_ms, now_ms)}"


def _pauses_ms(attempts: Sequence[Attempt]) -> int:
    """Add up the time between the end of each attempt and the start of the next one."""
    pauses_ms, over_ms = 0, None
    for attempt in attempts:
        if over_ms is not None and attempt.begun_ms is not None:
            pauses_ms += max(0, attempt.begun_ms - over_ms)
        # An attempt that never began lengthens the pause.
        over_ms = attempt.over_ms if attempt.begun_ms is not None else over_ms
    return pauses_ms


def _span_ms(history: RunHistory, now_ms: int) -> int | None:
    """Return the time from the first start to the end or to now; None before the first start."""
    run = history.run
    if run.started_at_ms is None:
        return None
    attempts = history.attempts
    begun_ms = attempts[0].begun_ms if attempts else None
    start_ms = run.started_at_ms if begun_ms is None else begun_ms
    last = next((one for one in reversed(attempts) if one.begun_ms is not None), None)
    over_ms = None if last is None else last.over_ms
    if run.finished_at_ms is None:
        # It waits for its next attempt, and that attempt has not begun.
        is_paused = last is not None and last is not attempts[-1]
        return max(0, (over_ms if is_paused and over_ms is not None else now_ms) - start_ms)
    return max(0, (run.finished_at_ms if over_ms is None else over_ms) - start_ms)


def _duration(row: RunRow) -> str:
    if row.duration_ms is None:
        return ""
    # How long it has run since its host was last heard is unknown.
    return figures.span(row.duration_ms) + ("" if row.silent_since_ms is None else "?")


def _hosts(row: RunRow) -> str:
    """Name two hosts at most: a gang may have hundreds."""
    return figures.first_of(row.instances, 2 if len(row.instances) == 2 else 1)


# A submission as scripts read it: what was frozen, what ran, and how it ended.


@dataclass(frozen=True, slots=True)
class SubmittedRow:
    """
    One submission.

    Attributes:
        name: Of the run, or of the sweep that it is.
        outcome: `done` where all its runs have succeeded, `failed` where one has not, `submitted`
            where nobody waited for them, `interrupted` where somebody stopped waiting.
        exit_code: What the command ends with, as in the table of exit codes.
        document: Where it lies in the tree.
        code_files: How many files of the working copy were frozen.
        commit: Of the working copy, with `+dirty` where it had changes; empty outside git.
        runs: One row each, as in `ps --format json`: `attempt`, `state`, `exit_code`, `message`.
    """

    name: str
    outcome: str
    exit_code: int
    document: str
    code_files: int
    commit: str
    runs: tuple[RunRow, ...]

"""
Why a run is in the state it is in: all of its reasons at once, and what to do next.

For `fleetform why`, and the API's answer of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.agents.protocol.states import JobState
from fleetform.model import figures
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import FINAL, AttemptState, RunState, RunUid
from fleetform.views.element_names import shorten_elements
from fleetform.views.lines import printable
from fleetform.views.moments import age
from fleetform.views.run_list import counts_text
from fleetform.views.runs import AttemptRow, RunDetail, RunRow, WaitingRow, row_message

if TYPE_CHECKING:
    from fleetform.model.history import LoggedEvent
    from fleetform.model.instance import Instance
    from fleetform.model.run import Attempt, Run, SilenceLimit
    from fleetform.model.scheduler_state import SchedulerState

_ADVICE = {
    "dependency": "run `fleetform why` for the run that it waits for",
    "concurrency": "raise `concurrency.limit` (or the `%` of `array`) to run more at once",
    "resources": "it starts when enough is free; `fleetform ps` shows what the other runs use",
    "gang": "all of its nodes start at once; fewer `nodes` would start sooner",
    "fleet-not-ready": "`fleetform fleet show FLEET` shows the hosts of a fleet and why they are not ready",
    "no-hosts": "raise `nodes` of the fleet and apply, or let `fleets` of the run name another one",
    "account": "do what the reason says; a run starts within a minute after its account was created",
    "volume-hosts": "list more hosts in `hosts` of the volume, or apply again once its hosts answer; a disk"
    " of a cloud is on one host of its zone at a time",
    "queue": "another `queue:`, or more `fleets:` in this one, lets it run on more hosts",
    "priority": "a higher `priority`, or a `max_duration` that ends before, lets it start earlier",
    "stopped": "set `state: running` in its document and apply",
    "recovering": "nothing starts before every host has reported its jobs: see `fleetform fleet show FLEET`",
}
"""What a person can do about each reason; a code that is missing needs nothing done."""


SILENT = frozenset({InstanceState.RECOVERING, InstanceState.UNREACHABLE})
"""The states of hosts that do not answer."""


@dataclass(frozen=True, slots=True)
class Why:
    """
    The answer for one run.

    `summary` is one sentence. `reasons` say why the run waits. `at_work` says which work has not
    ended although the run waits for its end. `attempts` are the attempts that have ended. `advice`
    has one sentence for each kind of reason, or says what to do about a failure.
    """

    name: str
    state: str
    summary: str
    reasons: tuple[WaitingRow, ...]
    attempts: tuple[AttemptRow, ...]
    advice: tuple[str, ...]
    at_work: tuple[str, ...] = ()


def explain(
    detail: RunDetail,
    *,
    at_work: tuple[str, ...] = (),
    more: Sequence[tuple[WaitingRow, str]] = (),
    instances: Iterable[Instance] = (),
    silence: SilenceLimit | None = None,
    now_ms: int,
) -> Why:
    """
    Answer from a run's detail, whose `waiting` the scheduler has filled.

    `at_work` is as `at_work_lines` says it. `more` are reasons that the scheduler does not know,
    each with what to do about it. Of `instances` those that do not answer matter. `silence` is as
    `silence_limit` finds it.
    """
    unreachable = _unreachable(detail, instances)
    row = detail.row
    is_final = row.state in FINAL
    # What it waited for no longer matters to a run that is to end.
    reasons = () if is_final or row.stop_requested else row.waiting
    if not is_final:
        reasons = (*reasons, *(reason for reason, _ in more))
    cures = tuple(cure for _, cure in more) if row.state != RunState.DONE else ()
    return Why(
        name=row.name,
        state=row.state,
        summary=(
            _ended(detail) if is_final else _summary(detail, reasons, unreachable, silence, now_ms)
        ),
        reasons=reasons,
        attempts=tuple(one for one in detail.attempts if one.finished_at_ms is not None),
        advice=(
            *cures,
            *(
                _advice_after(detail)
                if is_final
                else _advice_before(detail, reasons, unreachable, at_work)
            ),
        ),
        at_work=() if is_final else at_work,
    )


def why_lines(why: Why) -> tuple[str, ...]:
    """Write the answer as plain lines."""
    lines = [why.summary]
    lines.extend(f"  - {reason.detail}" for reason in why.reasons)
    lines.extend(f"  - {sentence}" for sentence in why.at_work)
    # One try that has ended the run is all in the summary.
    if len(why.attempts) > 1 or (why.attempts and why.state not in FINAL):
        lines.extend(f"  attempt {one.number}: {attempt_text(one)}" for one in why.attempts)
    lines.extend(f"help: {sentence}" for sentence in why.advice)
    # A message may hold what a program wrote, or the reason that a user gave.
    return tuple(map(printable, lines))


def attempt_text(attempt: AttemptRow) -> str:
    """
    Say how an attempt ended, how long its jobs took, and where: `exit code 3 after 2s on local-0`.

    A sentence of its host is not continued: `its supervisor no longer runs (after 2s on local-0)`.
    """
    codes = {job.exit_code for job in attempt.jobs}
    exited = f"exit code {codes.pop()}" if codes == {0} else ""
    how = exited or attempt.message or attempt.cause or attempt.state
    return _with_place(how, attempt)


def _with_place(how: str, attempt: AttemptRow) -> str:
    place = f"{_took(attempt)}{_where(attempt)}"
    is_sentence = " " in how and not how.startswith(("exit code ", "signal "))
    return f"{how} ({place.strip()})" if is_sentence and place else f"{how}{place}"


def _advice_before(
    detail: RunDetail,
    reasons: tuple[WaitingRow, ...],
    unreachable: Sequence[Instance],
    at_work: tuple[str, ...],
) -> tuple[str, ...]:
    if _doubt(detail):
        advice = (
            f"look at these processes on {_listed(detail.row.instances)} and end those that are the"
            " run's, or restart the host: its agent then finds the end by itself"
        )
        return (advice,)
    if detail.row.state == RunState.UNKNOWN and unreachable:
        return tuple(_advice_lost(one) for one in unreachable if one.provider == "ssh")
    return _advice(reasons, at_work)


def _advice_lost(one: Instance) -> str:
    if one.state is InstanceState.TERMINATING:
        return (
            f"if {one.name} never returns, declare it in fleet {one.fleet} again, with `lost: REASON`,"
            " and apply"
        )
    return f"if {one.name} never returns, set `lost: REASON` at this host in fleet {one.fleet} and apply"


def _advice(reasons: tuple[WaitingRow, ...], at_work: tuple[str, ...]) -> tuple[str, ...]:
    codes = dict.fromkeys(reason.code for reason in reasons)
    if at_work and [reason.code for reason in reasons].count("dependency") == 1:
        # It waits for the earlier run of its own name, which cannot be asked for and is reported.
        codes.pop("dependency")
    return tuple(_ADVICE[code] for code in codes if code in _ADVICE)


def _advice_after(detail: RunDetail) -> tuple[str, ...]:
    row = detail.row
    # A shell takes the brackets of an element's name for a pattern.
    name = f"'{row.name}'" if row.element else row.name
    if row.state == RunState.DONE and not row.archived and row.stale:
        return (f"`fleetform rerun {name}` makes a new one from the current inputs",)
    if row.state == RunState.DONE or row.archived:
        return ()
    again = f"change its document and apply, or run it as it is: `fleetform rerun {name}`"
    if not any(job.log_bytes for one in detail.attempts for job in one.jobs):
        return (again,)
    return (f"`fleetform logs {name}` shows what it printed", again)


def _doubt(detail: RunDetail) -> str:
    """Say why the end of one of its jobs cannot be proven; empty where none is in doubt."""
    jobs = detail.attempts[-1].jobs if detail.attempts else ()
    return next((job.message for job in jobs if job.state == JobState.UNKNOWN), "")


def _unreachable(detail: RunDetail, instances: Iterable[Instance]) -> tuple[Instance, ...]:
    """Return the hosts of the run that do not answer; one that leaves does while its jobs are known."""
    is_unknown = detail.row.state == RunState.UNKNOWN
    return tuple(
        one
        for one in instances
        if (one.state in SILENT or (is_unknown and one.is_silent))
        and one.name in detail.row.instances
    )


def silence_limit(run: Run, book: SchedulerState) -> SilenceLimit | None:
    """Return the limit with which the jobs of a run were started; all of an attempt have the same."""
    attempt = book.attempts.get(run.uid)
    return None if attempt is None else next((job.silence for job in attempt.jobs), None)


def _end_by_silence(limit: SilenceLimit) -> str:
    after, proof = figures.span(limit.after_seconds * 1000), figures.span(limit.proof_ms)
    return (
        f"A host stops it after {after} without a controller (`on_silence`), and it counts as lost when"
        f" a controller has not reached the host for {proof}."
    )


def _silence(one: Instance, now_ms: int) -> str:
    heard = "" if one.seen_at_ms is None else f", last heard {age(one.seen_at_ms, now_ms)} ago"
    why = f" ({one.message})" if one.message else ""
    state = "leaving and silent" if one.state is InstanceState.TERMINATING else one.state
    return f"host {one.name} is {state}{heard}{why}"


def _summary(
    detail: RunDetail,
    reasons: Sequence[WaitingRow],
    unreachable: Sequence[Instance],
    silence: SilenceLimit | None,
    now_ms: int,
) -> str:
    row = detail.row
    if row.stop_requested:
        return f"{row.name} is {row.state} and is asked to stop: {row.stop_requested}."
    if row.state == RunState.RUNNING and row.started_at_ms is not None:
        last = detail.attempts[-1] if detail.attempts else None
        began_ms = row.started_at_ms if last is None else last.started_at_ms or row.started_at_ms
        since = figures.span(max(0, now_ms - began_ms))
        hosts = "".join(f" H{_silence(one, now_ms)[1:]}." for one in unreachable[:3])
        return f"{row.name} has been running for {since} on {_listed(row.instances)}.{hosts}"
    if doubt := _doubt(detail):
        return (
            f"{row.name} is unknown: {doubt}. It is not started again before there is proof"
            f" that nothing of it runs on {_listed(row.instances)}."
        )
    if row.state == RunState.UNKNOWN and unreachable:
        hosts = "; ".join(_silence(one, now_ms) for one in unreachable[:3])
        jobs = "its job" if row.nodes == 1 else "its jobs"
        end = "" if silence is None else f" {_end_by_silence(silence)}"
        return f"{row.name} is unknown: {hosts}. It is not started again while {jobs} may still run there.{end}"
    if row.state == RunState.UNKNOWN:
        return (
            f"{row.name} is unknown: no host that may run it answers. It is not started again"
            " before there is proof that it is over."
        )
    if reasons:
        noun = figures.counted(len(reasons), "reason")
        waited = figures.span(max(0, now_ms - row.submitted_at_ms))
        return f"{row.name} is {row.state} and has waited for {waited}, for {noun}:"
    return f"{row.name} is {row.state}; nothing blocks it."


def _ended(detail: RunDetail) -> str:
    ended = _how_it_ended(detail)
    if detail.row.archived:
        ended += " It is archived: the configuration does not declare it any more."
    stale = detail.row.stale_because
    return f"{ended} {stale[0].upper()}{stale[1:]}." if stale else ended


def _how_it_ended(detail: RunDetail) -> str:
    row = detail.row
    last = detail.attempts[-1] if detail.attempts else None
    if last is None or last.started_at_ms is None:
        return f"{row.name} is {row.state}{f': {row.message}' if row.message else ''}."
    # The run's own message comes first: it names the user who stopped the run.
    how = _with_place(row.message, last) if row.message else attempt_text(last)
    return f"{row.name} is {row.state}: {how}."


def _took(attempt: AttemptRow) -> str:
    started = [job.started_at_ms for job in attempt.jobs if job.started_at_ms is not None]
    finished = [job.finished_at_ms for job in attempt.jobs if job.finished_at_ms is not None]
    if not started or not finished:
        return ""
    return f" after {figures.span(max(0, max(finished) - min(started)))}"


def _where(attempt: AttemptRow) -> str:
    names = tuple(job.instance for job in attempt.jobs if job.instance and job.started_at_ms)
    return f" on {_listed(names)}" if names else ""


def _listed(names: tuple[str, ...]) -> str:
    return figures.first_of(names, 3) or "its host"


# Why the elements of an array or a sweep are where they are: one paragraph for all with the same reasons.


@dataclass(frozen=True, slots=True)
class WhyElement:
    """The answer for one element, with its row."""

    row: RunRow
    why: Why


def why_elements_lines(elements: Sequence[WhyElement]) -> Iterator[str]:
    """Write the counts of each array or sweep, then a paragraph for each group of elements."""
    by_parent: dict[str, list[WhyElement]] = {}
    for one in elements:
        by_parent.setdefault(one.row.parent or one.row.name, []).append(one)
    for parent, members in by_parent.items():
        rows = [one.row for one in members]
        yield f"{parent}: {figures.counted(len(rows), 'run')}: {counts_text(rows)}"
        for group in _alike(members):
            yield ""
            yield from why_lines(group[0].why) if len(group) == 1 else _group_lines(parent, group)


def _alike(elements: Iterable[WhyElement]) -> Iterator[list[WhyElement]]:
    groups: dict[tuple[str, str, tuple[WaitingRow, ...], tuple[str, ...]], list[WhyElement]] = {}
    for one in elements:
        message = "" if one.why.reasons else row_message(one.row)
        key = (one.why.state, message, one.why.reasons, one.why.at_work)
        groups.setdefault(key, []).append(one)
    yield from groups.values()


def _group_lines(parent: str, group: Sequence[WhyElement]) -> Iterator[str]:
    why = group[0].why
    names = shorten_elements(one.row.element for one in group)
    message = row_message(group[0].row)
    head = f"elements {names.text} are {why.state}"
    if why.reasons:
        yield f"{head}, for {figures.counted(len(why.reasons), 'reason')}:"
    else:
        yield printable(f"{head}: {message}." if message else f"{head}.")
    yield from (printable(f"  - {reason.detail}") for reason in why.reasons)
    yield from (printable(f"  - {sentence}") for sentence in why.at_work)
    if why.reasons:
        yield from (f"help: {sentence}" for sentence in why.advice)
    elif why.state in _AGAIN:
        address = f"{parent}{names.text}" if names.is_address else group[0].row.name
        yield f"help: `fleetform logs '{address}'` prints output, `fleetform rerun '{address}'` runs again"


_AGAIN = frozenset({RunState.FAILED, RunState.STOPPED, RunState.ABORTED, RunState.UNSCHEDULABLE})


# What of a run is at work still although its end is waited for: which job, where, since when.
#
# A stop that does not get through looks like any other from the run's state: one rank hangs in the
# kernel, or its host is silent. And a successor waits for a run that has the same name, which
# nobody can ask for.

_JOBS_MAX = 5
"""Jobs that are listed: of a gang of a hundred, the first say what is wrong."""

_ASKS = frozenset({"run.stop-requested", "run.stopping"})


def at_work_lines(
    run: Run, book: SchedulerState, events: Iterable[LoggedEvent], *, now_ms: int
) -> tuple[str, ...]:
    """
    Say what is at work of a run that is to end, or of the one that it waits for.

    Args:
        run: As it is now.
        book: What is not over.
        events: Those of its name: when its end was asked for.
        now_ms: For how long ago that was.
    """
    earlier = book.runs.get(RunUid(run.after_uid))
    ending = run if earlier is None else earlier
    attempt = book.attempts.get(ending.uid)
    if attempt is None or attempt.state is AttemptState.WAITING:
        return ()
    hosts = {one.uid: one for one in book.instances}
    lines = [] if earlier is None else [_earlier(earlier, attempt, hosts)]
    if ending.stop_requested:
        asked = max((one.at_ms for one in events if one.kind in _ASKS), default=None)
        since = (
            ""
            if asked is None
            else f", {figures.span(max(0, now_ms - asked))} after the stop was requested"
        )
        jobs = list(_jobs(attempt, hosts, since))
        more = len(jobs) - _JOBS_MAX
        lines += jobs[:_JOBS_MAX] + (
            [f"and {figures.counted(more, 'job')} more"] if more > 0 else []
        )
    return tuple(lines)


def _earlier(run: Run, attempt: Attempt, hosts: Mapping[str, Instance]) -> str:
    names = dict.fromkeys(
        hosts[job.instance_uid].name for job in attempt.jobs if job.instance_uid in hosts
    )
    where = f" on {', '.join(names)}" if names else ""
    asked = f" and is asked to stop: {run.stop_requested}" if run.stop_requested else ""
    return f"the earlier run is {run.state.value}{where}{asked}"


def _jobs(attempt: Attempt, hosts: Mapping[str, Instance], since: str) -> Iterator[str]:
    for job in attempt.jobs:
        host = hosts.get(job.instance_uid)
        if job.state is JobState.FINISHED or host is None:
            continue
        who = f"rank {job.key.rank}" if len(attempt.jobs) > 1 else "its job"
        silent = f": the host is {host.state}" if host.state in SILENT else ""
        yield f"{who} on {host.name} has not ended{since}{silent}"

"""
The state of an environment on one screen: what `fleetform status` prints, as text and as JSON.

Each line stands for one question that a person asks first: which commit is applied, can the ledger be
trusted, does a controller run, do hosts answer, did runs fail, what is blocked, and by whom.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.model.drift import expected_and_seen
from fleetform.model.figures import counted
from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.run_state import RunState
from fleetform.views.controllers import ControllerRow, WaitingRow, controller_lines, waiting_row
from fleetform.views.lines import BLANK, Line, Span, line, printable
from fleetform.views.moments import age, moment
from fleetform.views.reasons import blocked_text
from fleetform.views.table import row_of

if TYPE_CHECKING:
    from fleetform.model.overview import Overview, TroubledHost, TroubledRun
    from fleetform.model.rollout_status import RolloutStatus

READY = "ready"

_DIGITS = 12
"""Of a commit or a digest: tells it from all others of one environment."""

_NAMES_MAX = 5

_SILENT = ("recovering", "unreachable")
"""Ends of states of hosts that do not answer; a suspect one has a connection."""

TROUBLED_HOSTS = (
    "gone",
    "refused",
    "waiting for capacity",
    "not created",
    "recovering",
    "unreachable",
    "suspect",
    "quarantined",
)
"""States of hosts that need attention."""

LINES_MAX = 23
"""Of a terminal with 24 lines: one is for the prompt."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """
    Whether the ledger can be trusted.

    condition: `ready`, `empty` (nothing was applied yet), `recovering`, or why it cannot be read:
    `damaged`, `older`, `newer`, `foreign`, `unreachable`, `unreadable`. `detail` and `advice` are
    empty where all is well.
    """

    condition: str
    detail: str = ""
    advice: str = ""

    @property
    def is_readable(self) -> bool:
        return self.condition in {READY, "empty", "recovering"}


@dataclass(frozen=True, slots=True)
class AppliedRow:
    """The newest apply of the whole configuration. state: `running`, `done`, `failed`, `interrupted`."""

    commit: str
    state: str
    who: str
    at_ms: int
    plan: str
    summary: str


@dataclass(frozen=True, slots=True)
class HostsRow:
    """
    The hosts of all fleets: how many are in each state, and the first that do not answer or fail.

    A ready host that gets no new jobs counts as `draining`, and without jobs as `drained`. `heard_at_ms`: when the host that was
    silent longest was heard last. `hourly_micros` is what those of clouds cost an hour now in micro-dollars, without
    `unpriced_hosts`; null without one.
    """

    total: int
    states: dict[str, int]
    troubled: tuple[TroubledHost, ...]
    heard_at_ms: int | None
    hourly_micros: int | None = None
    unpriced_hosts: int = 0


@dataclass(frozen=True, slots=True)
class BlockedRun:
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunsRow:
    """
    The runs of the configuration: how many are in each state.

    `troubled` are the first of the `troubled_count` runs that failed, were aborted, can never be
    placed, or whose outcome is unknown. `outdated` counts results whose inputs have changed: they stay
    as they are until a re-run is asked for, so they need no attention. `open` counts all that a controller would bring to their end.
    `ending` are the first of the `ending_count` runs that were removed or replaced and are not over.
    `blocked` are those that wait for an account on a host or for a fleet with `nodes: 0`, which only a person changes, with the reason.
    """

    total: int
    states: dict[str, int]
    troubled_count: int
    troubled: tuple[TroubledRun, ...]
    outdated: int
    open: int
    ending_count: int = 0
    ending: tuple[str, ...] = ()
    blocked: tuple[BlockedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class DriftSeen:
    """One field that differed from what was applied when it was last looked at."""

    resource: str
    path: str
    drift_class: str
    expected: str
    seen: str
    seen_at_ms: int


@dataclass(frozen=True, slots=True)
class BlockedChange:
    """One change that is not applied, what blocks it, and what would release it."""

    resource: str
    blocked_by: str
    detail: str
    cure: str


@dataclass(frozen=True, slots=True)
class BlockedRow:
    """What the last apply of the whole environment could not change, and when that was."""

    plan: str
    at_ms: int
    who: str
    changes: tuple[BlockedChange, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """
    An environment at one moment.

    Attributes:
        uid: Its first eight characters, which people look for; the whole is a key of what plans hide.
        fingerprint: Stands for the whole uid; plans of the environment have the same.
        applied: None without an apply of the whole configuration.
        destroyed_at_ms: When `destroy` has removed everything since; None where it has not.
        working_copy: The commit that is checked out, `+dirty` where files of the configuration differ
            from it; empty outside of git.
        commits_ahead: How many commits the working copy has that are not applied; None where that is
            not known, such as outside git.
        controller: None where no process drives the runs.
        hosts, runs: None where the ledger cannot be read.
        overrides: What is in force above the configuration, a sentence each.
        attention: What is not as it should be, a clause each; empty where nothing is wrong.
        exit_code: What `fleetform status --exit-code` exits with.
    """

    environment: str
    uid: str
    fingerprint: str
    ledger: LedgerRow
    applied: AppliedRow | None
    destroyed_at_ms: int | None
    working_copy: str
    commits_ahead: int | None
    controller: ControllerRow | None
    hosts: HostsRow | None
    runs: RunsRow | None
    drift: tuple[DriftSeen, ...]
    blocked: BlockedRow | None
    in_progress: tuple[WaitingRow, ...]
    rollouts: Mapping[str, RolloutStatus]
    overrides: tuple[str, ...]
    attention: tuple[str, ...]
    exit_code: int
    at_ms: int


# -- rows ----------------------------------------------------------------------------------


def hosts_row(found: Overview) -> HostsRow:
    cost = functools.reduce(HourlyCost.plus, found.hourly.values(), HourlyCost())
    return HostsRow(
        sum(found.hosts.values()),
        dict(found.hosts),
        found.troubled_hosts,
        found.heard_at_ms,
        cost.micros if found.hourly else None,
        cost.unknown_hosts,
    )


def runs_row(found: Overview, blocked: Mapping[str, str]) -> RunsRow:
    return RunsRow(
        total=sum(found.runs.values()),
        states={state.value: count for state, count in found.runs.items()},
        troubled_count=found.troubled_count,
        troubled=found.troubled,
        outdated=found.outdated_count,
        open=found.work_count,
        ending_count=found.ending_count,
        ending=found.ending,
        blocked=tuple(BlockedRun(name, reason) for name, reason in sorted(blocked.items())),
    )


def drift_rows(found: Overview) -> tuple[DriftSeen, ...]:
    return tuple(
        row_of(DriftSeen, one.drift, one, resource=str(one.drift.resource)) for one in found.drift
    )


def in_progress_rows(found: Overview) -> tuple[WaitingRow, ...]:
    return tuple(waiting_row(one.record, one.open_steps) for one in found.applies)


# -- text ----------------------------------------------------------------------------------


def status_lines(status: Status, *, width: int = 0) -> tuple[Line, ...]:
    """
    Write the status, a block of lines for each question; a block without an answer is left out.

    Lists are cut until all blocks fit the `LINES_MAX` lines of a small terminal. With `width`, lines
    are cut to so many columns; 0 leaves them whole, for a pipe.
    """
    for names_max in range(_NAMES_MAX, -1, -1):
        lines = (*_labelled(_blocks(status, names_max)), BLANK, *_last(status, width))
        if len(lines) <= LINES_MAX:
            break
    return tuple(_cut(one, width) for one in lines) if width else lines


def _blocks(status: Status, names_max: int) -> Iterable[tuple[str, Iterable[Line]]]:
    return (
        ("environment", _environment(status)),
        ("commit", _commit(status)),
        ("ledger", _ledger(status.ledger)),
        ("controller", _controller(status)),
        ("hosts", _hosts(status, names_max)),
        ("runs", _runs(status, names_max)),
        ("drift", _drift(status, names_max)),
        ("blocked", _blocked(status, names_max)),
        ("overrides", _overrides(status, names_max)),
        ("in progress", _in_progress(status, names_max)),
    )


def _cut(one: Line, width: int) -> Line:
    """Cut a line to `width` columns, with an ellipsis at its end."""
    if len(one.text) <= width:
        return one
    spans, room = [], width - 1
    for span in one.spans:
        spans.append(Span(span.text[:room], span.tone))
        room -= len(spans[-1].text)
    return Line((*spans, Span("…", "dim")))


def _more(count: int, listed: int, names_max: int, command: str) -> Iterator[Line]:
    """Count what is not shown; of `listed`, the first `names_max` are."""
    shown = min(listed, names_max)
    if count > shown:
        both = f"and {count - shown} more" if shown else f"{count}"
        yield line((f"  {both}: `{command}`", "dim"))


_WIDTH = len("environment")


def _labelled(blocks: Iterable[tuple[str, Iterable[Line]]]) -> Iterator[Line]:
    for label, lines in blocks:
        for number, one in enumerate(lines):
            title = "" if number else label
            yield Line((Span(f"{title:<{_WIDTH}}  ", "dim"), *one.spans))


def _environment(status: Status) -> Iterator[Line]:
    yield line((printable(status.environment), "bold"), (f" ({status.uid})", "dim"))


def _commit(status: Status) -> Iterator[Line]:
    here = status.working_copy
    applied = "" if status.applied is None else status.applied.commit
    if status.applied is None:
        yield line(("the whole configuration was not applied yet", "warn"))
    else:
        when = f"{moment(status.applied.at_ms)} by {printable(status.applied.who)}"
        state = status.applied.state
        what = _short(applied) or "a configuration without a commit"
        # "done" would be read of the runs, which go on.
        told = "" if state == "done" else f", {state}"
        yield line(
            f"applied: {what} at {when}",
            (told, "bad" if state in {"failed", "interrupted"} else "plain"),
            (_destroyed(status), "warn"),
        )
    if here:
        # Two states of changed files look alike: only `plan` compares them.
        is_same = here == applied and not here.endswith("+dirty")
        compare = "" if is_same else "; `fleetform plan` compares"
        ahead = counted(status.commits_ahead, "commit") if status.commits_ahead else ""
        yield line(
            f"working copy: {_short(here)}{f', {ahead} ahead' if ahead else ''}", (compare, "dim")
        )


def _destroyed(status: Status) -> str:
    at_ms = status.destroyed_at_ms
    return "" if at_ms is None else f"; `fleetform destroy` at {moment(at_ms)}"


def _ledger(ledger: LedgerRow) -> Iterator[Line]:
    tone = "good" if ledger.condition == READY else "dim" if ledger.condition == "empty" else "bad"
    detail = f": {printable(ledger.detail)}" if ledger.detail else ""
    yield line((ledger.condition, tone), detail)
    if ledger.advice:
        yield line(("help: ", "help"), printable(ledger.advice))


def _controller(status: Status) -> Iterator[Line]:
    row = status.controller
    idle = status.runs is not None and not status.runs.open and not status.in_progress
    for text in controller_lines(row, now_ms=status.at_ms):
        yield line((printable(text), "plain" if row is not None or idle else "warn"))
    if row is not None and row.warning:
        yield line(("warning: ", "warning"), printable(row.warning))


def _hosts(status: Status, names_max: int) -> Iterator[Line]:
    if (hosts := status.hosts) is None:
        return
    cost = ""
    if hosts.hourly_micros is not None:
        cost = f"; {HourlyCost(hosts.hourly_micros, hosts.unpriced_hosts)}"
    if not hosts.total:
        yield line(("no hosts", "dim"), cost)
        return
    heard = ""
    # A controller that is there hears from its hosts all the time.
    if status.controller is None and hosts.heard_at_ms is not None:
        heard = f"; last heard {age(hosts.heard_at_ms, status.at_ms)} ago"
    yield line(f"{hosts.total}: {_states(hosts.states)}{cost}", (heard, "dim"))
    for one in hosts.troubled[:names_max]:
        is_silent = one.seen_at_ms is not None and one.state.endswith(_SILENT)
        silent = f", silent for {age(one.seen_at_ms or 0, status.at_ms)}" if is_silent else ""
        # What is said of a host that waits for capacity begins with that.
        is_told = one.message.startswith(one.state)
        what = printable(one.message) if is_told else f"{one.state}{silent}{_detail(one.message)}"
        yield line(("! ", "bad"), f"{printable(one.name)} is {what}")
    troubled = max(len(hosts.troubled), sum(hosts.states.get(state, 0) for state in TROUBLED_HOSTS))
    yield from _more(troubled, len(hosts.troubled), names_max, "fleetform fleet show FLEET")


def _runs(status: Status, names_max: int) -> Iterator[Line]:
    if (runs := status.runs) is None:
        return
    if runs.total:
        yield line(f"{runs.total}: {_states(runs.states)}")
    elif not runs.ending_count:
        yield line(("no runs", "dim"))
    if runs.ending_count:
        verb, names = "is" if runs.ending_count == 1 else "are", ", ".join(runs.ending[:names_max])
        more = runs.ending_count - min(names_max, len(runs.ending))
        shown = f": {printable(names)}{f' and {more} more' if more else ''}" if names else ""
        yield line(
            ("~ ", "warn"),
            f"{counted(runs.ending_count, 'removed or replaced run')} {verb} not over{shown}",
        )
    for one in runs.troubled[:names_max]:
        yield line(
            ("! ", "bad"), f"{printable(one.name)} is {one.state.value}{_detail(one.message)}"
        )
    for blocked in runs.blocked[:names_max]:
        yield line(("! ", "warn"), f"{printable(blocked.name)} waits: {printable(blocked.reason)}")
    count = len(runs.blocked)
    yield from _more(count, count, names_max, "fleetform ps --state submitted")
    states = " ".join(f"--state {state.value}" for state in _BAD if state.value in runs.states)
    listed = len(runs.troubled)
    yield from _more(runs.troubled_count, listed, names_max, f"fleetform ps {states}")
    if runs.outdated:
        results = counted(runs.outdated, "outdated result")
        yield line(("~ ", "warn"), results, ("; `fleetform plan` lists them", "dim"))


_BAD = (RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.UNKNOWN)


def _drift(status: Status, names_max: int) -> Iterator[Line]:
    for one in status.drift[:names_max]:
        ago = f"{age(one.seen_at_ms, status.at_ms)} ago"
        what = expected_and_seen(one.path, one.expected, one.seen, ago)
        yield line(("! ", "warn"), printable(f"{one.resource} {what}"))
    count = len(status.drift)
    yield from _more(count, count, names_max, "fleetform drift")


def _blocked(status: Status, names_max: int) -> Iterator[Line]:
    if status.blocked is None or not status.blocked.changes:
        return
    blocked = status.blocked
    count = counted(len(blocked.changes), "change")
    yield line(
        (count, "warn"),
        f" blocked in the last apply of {moment(blocked.at_ms)}; `fleetform plan` shows the"
        " current ones",
    )
    for one in blocked.changes[:names_max]:
        detail = printable(blocked_text(one.blocked_by, one.detail))
        yield line(("! ", "warn"), f"{printable(one.resource)}: {detail}")
    if names_max:
        listed = len(blocked.changes)
        yield from _more(listed, listed, names_max, "fleetform plan")


def _overrides(status: Status, names_max: int) -> Iterator[Line]:
    for sentence in status.overrides[:names_max]:
        yield line((printable(sentence), "warn"))
    count = len(status.overrides)
    yield from _more(count, count, names_max, "fleetform emergency list")


def _in_progress(status: Status, names_max: int) -> Iterator[Line]:
    for one in status.in_progress[:names_max]:
        since = age(one.since_ms, status.at_ms)
        yield line(
            f"plan {one.plan[:_DIGITS]}, applied by {printable(one.who)} since {since}:"
            f" {counted(one.open_steps, 'step')} left"
        )
    for fleet, found in status.rollouts.items():
        # Here: most commands read this module without one.
        from fleetform.views.rollouts import rollout_text

        yield line(printable(rollout_text(fleet, found)))
    count = len(status.in_progress)
    yield from _more(count, count, names_max, "fleetform history")


def _last(status: Status, width: int) -> Iterator[Line]:
    """Say what needs attention; a terminal has the whole sentence, over several lines."""
    if not status.attention:
        yield line(("Nothing needs attention.", "good"))
        return
    label = "Needs attention: "
    text = f"{printable('; '.join(status.attention))}."
    first, *rest = textwrap.wrap(text, width - len(label)) if width else [text]
    yield line((label, "bad"), first)
    for one in rest:
        yield line(f"{'':<{len(label)}}{one}")


def _states(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {_WORDS.get(state, state)}" for state, count in states.items())


_WORDS = {"terminating": "leaving"}


def _detail(message: str) -> str:
    return f": {printable(message)}" if message else ""


def _short(commit: str) -> str:
    digits, plus, dirty = commit.partition("+")
    return f"{digits[:_DIGITS]}{plus}{dirty}"

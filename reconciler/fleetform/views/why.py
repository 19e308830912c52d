"""
Why a run is in the state it is in: all of its reasons at once, and what to do next.

For `fleetform why`, and the API's answer of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleetform.model import figures
from fleetform.model.run import FINAL, RunState
from fleetform.views.runs import AttemptRow, RunDetail, RunRow, WaitingRow

_ADVICE = {
    "dependency": "`fleetform why` on the run it waits for says what that one needs",
    "concurrency": "raise `concurrency.limit` (or the `%` of `array`) to run more at once",
    "resources": "it starts when enough is given back; `fleetform ps` shows who holds what",
    "gang": "all of its nodes start at once; fewer `nodes` would start sooner",
    "fleet-not-ready": "`fleetform fleet` shows the hosts and what keeps them",
    "priority": "a higher `priority`, or a `max_duration` that ends before, lets it start earlier",
    "stopped": "set `state: running` in its document and apply",
    "recovering": "nothing starts before every host has told what it runs; `fleetform fleet` shows them",
}
"""What a person can do about each reason; a code that is missing needs nothing done."""


@dataclass(frozen=True, slots=True)
class Why:
    """
    The answer for one run.

    `summary` is one sentence. `reasons` say why it waits, `attempts` how earlier tries went.
    `advice` has one sentence a kind of reason.
    """

    name: str
    state: str
    summary: str
    reasons: tuple[WaitingRow, ...]
    attempts: tuple[AttemptRow, ...]
    advice: tuple[str, ...]


def explain(detail: RunDetail, *, now_ms: int) -> Why:
    """Answer from a run's detail, whose `waiting` the scheduler has filled."""
    row = detail.row
    is_final = row.state in FINAL
    reasons = () if is_final else row.waiting
    codes = dict.fromkeys(reason.code for reason in reasons)
    return Why(
        name=row.name,
        state=row.state,
        summary=_summary(row, now_ms),
        reasons=reasons,
        attempts=tuple(one for one in detail.attempts if one.finished_at_ms is not None),
        advice=tuple(_ADVICE[code] for code in codes if code in _ADVICE),
    )


def why_lines(why: Why) -> tuple[str, ...]:
    """Write the answer as plain lines."""
    lines = [why.summary]
    lines.extend(f"  - {reason.detail}" for reason in why.reasons)
    for attempt in why.attempts:
        message = attempt.message or attempt.cause or attempt.state
        lines.append(f"  try {attempt.number}: {message}")
    lines.extend(f"help: {sentence}" for sentence in why.advice)
    return tuple(lines)


def _summary(row: RunRow, now_ms: int) -> str:
    if row.state in FINAL:
        return _ended(row)
    if row.state == RunState.RUNNING and row.started_at_ms is not None:
        since = figures.span(max(0, now_ms - row.started_at_ms))
        return f"{row.name} has been running for {since} on {_listed(row.instances)}."
    if row.state == RunState.UNKNOWN:
        return (
            f"{row.name} is unknown: no host that may run it answers. It is not started again"
            " before there is proof that it is over."
        )
    if row.waiting:
        noun = figures.counted(len(row.waiting), "reason")
        waited = figures.span(max(0, now_ms - row.submitted_at_ms))
        return f"{row.name} is {row.state} and has waited for {waited}, for {noun}:"
    return f"{row.name} is {row.state}; nothing is in its way."


def _ended(row: RunRow) -> str:
    took = "" if row.duration_ms is None else f" after {figures.span(row.duration_ms)}"
    detail = f": {row.message}" if row.message else ""
    return f"{row.name} is {row.state}{took}{detail}."


def _listed(names: tuple[str, ...]) -> str:
    if len(names) <= 3:
        return ", ".join(names) or "its host"
    return f"{', '.join(names[:3])} and {len(names) - 3} more"

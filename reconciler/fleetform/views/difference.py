"""Two declarations or two runs compared: what differs, as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetform.model import figures
from fleetform.model.plan import Action, Change
from fleetform.model.run_state import FINAL
from fleetform.views.lines import BLANK, Line, Span, line, printable
from fleetform.views.plan.groups import field_lines, group_changes
from fleetform.views.table import Cell, Column, Table, make_table

if TYPE_CHECKING:
    from fleetform.model.ports import RunHistory
    from fleetform.model.redaction import Seal

_SIGNS = {Action.CREATE: ("+", "good"), Action.DELETE: ("-", "bad"), Action.UPDATE: ("~", "warn")}


def difference_lines(changes: Sequence[Change]) -> Iterator[Line]:
    """One block a change, or a group of elements, and a line that counts."""
    for group in group_changes(changes):
        sign, tone = _SIGNS[group.first.action]
        yield line(Span(f"{sign:>3} ", tone), (group.title, "bold"))
        if group.first.action is not Action.CREATE:
            yield from field_lines(group)
        yield BLANK
    yield line((_count(changes), "bold"))


def _count(changes: Sequence[Change]) -> str:
    if not changes:
        return "No differences."
    added = sum(change.action is Action.CREATE for change in changes)
    gone = sum(change.action is Action.DELETE for change in changes)
    other = len(changes) - added - gone
    words = ((added, "only on the right"), (gone, "only on the left"), (other, "different"))
    return f"{', '.join(f'{count} {word}' for count, word in words if count)}."


def difference_json(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """As `plan --format json` shows fields: a side that is not set lacks its key."""
    return [
        {
            "address": str(change.key),
            "type": change.type,
            "difference": {"create": "added", "delete": "removed"}.get(change.action, "changed"),
            "fields": [
                {"path": one.path}
                | ({"before": one.before} if one.before_set else {})
                | ({"after": one.after} if one.after_set else {})
                | ({"sensitive": True} if one.sensitive else {})
                for one in change.fields
            ],
        }
        for change in changes
    ]


# -- two runs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunSide:
    """One of two runs, with the document that it was made from, canonical."""

    history: RunHistory
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that can be said of both runs; texts, empty where there is nothing to say."""

    what: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return self.left != self.right


def run_facts(left: RunSide, right: RunSide, seal: Seal) -> tuple[Fact, ...]:
    """Where they came from, where they ran, how they ended and what they used, in this order."""
    sides = _facts(left, seal), _facts(right, seal)
    return tuple(Fact(what, one, other) for (what, one), (_, other) in zip(*sides, strict=True))


def _facts(side: RunSide, seal: Seal) -> tuple[tuple[str, str], ...]:
    history = side.history
    run = history.run
    attempt = history.attempts[-1] if history.attempts else None
    jobs = attempt.jobs if attempt is not None else ()
    hosts = sorted({history.host_names.get(job.instance_uid, "") for job in jobs} - {""})
    ended = run.state in FINAL and run.started_at_ms is not None and run.finished_at_ms is not None
    took = (run.finished_at_ms or 0) - (run.started_at_ms or 0) if ended else None
    codes = [str(job.exit_code) for job in jobs if job.exit_code is not None]
    peaks = [job.peak_memory_bytes for job in jobs if job.peak_memory_bytes is not None]
    times = [job.cpu_time_ms for job in jobs if job.cpu_time_ms is not None]
    return (
        ("commit", history.commit),
        ("execution", seal.digest(history.execution_digest)[:12]),
        ("state", run.state.value),
        ("why", run.message or run.cause),
        ("attempts", str(run.attempt)),
        ("hosts", ", ".join(hosts)),
        ("took", "" if took is None else figures.span(took)),
        ("exit codes", ", ".join(codes)),
        ("peak memory", figures.size(max(peaks)) if peaks else ""),
        ("CPU time", figures.span(sum(times)) if times else ""),
    )


def run_facts_table(facts: Iterable[Fact], left: str, right: str) -> Table:
    columns: tuple[Column[Fact], ...] = (
        Column("", lambda fact: fact.what),
        Column(printable(left), lambda fact: Cell(fact.left, "bad" if fact.differs else "dim")),
        Column(printable(right), lambda fact: Cell(fact.right, "good" if fact.differs else "dim")),
    )
    return make_table(columns, facts)

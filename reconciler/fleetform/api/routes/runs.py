"""`/runs`: where every run stands, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX, Page, number_place, write_cursor
from fleetform.api.routes.logs import current_run
from fleetform.api.sources import FromSources, MaybeReader, SomeReader
from fleetform.api.waiting import waiting_reasons
from fleetform.model.decision import Waiting
from fleetform.model.instance import Instance
from fleetform.model.ports import Reader, RunHistory, RunQuery
from fleetform.model.run import FINAL, RunState, RunUid
from fleetform.spec.desired import ResourceKey
from fleetform.views.runs import RunDetail, RunRow, run_detail, run_rows
from fleetform.views.why import Why, at_work_lines, explain, silence_limit

router = APIRouter(tags=["runs"])


@router.get("/runs")
def list_runs(
    sources: FromSources,
    reader: MaybeReader,
    state: Annotated[
        list[RunState] | None, Query(description="Only runs in this state; may be repeated")
    ] = None,
    parent: Annotated[str | None, Query(description="Only elements of this sweep")] = None,
    archived: Annotated[
        bool, Query(description="Include finished runs that were removed from the configuration")
    ] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[RunRow]:
    """List runs in the order in which they were submitted."""
    if reader is None:
        return Page(items=[], next=None)
    query = RunQuery(
        after=number_place(cursor),
        # One more, which tells whether anything follows.
        limit=limit + 1,
        states=tuple(state or ()),
        parent=parent,
        archived=archived,
    )
    found = reader.read_run_page(query)
    shown = found[:limit]
    now_ms = sources.now_ms()
    rows = run_rows(
        shown,
        instances=_hosts(reader, shown),
        waiting=_waiting(reader, shown, now_ms),
        now_ms=now_ms,
    )
    follows = len(found) > limit
    return Page(items=list(rows), next=write_cursor(shown[-1].run.number) if follows else None)


def _hosts(reader: Reader, histories: Sequence[RunHistory]) -> Sequence[Instance]:
    """Read the hosts where one of these runs may be at work: a silent one ends its duration."""
    if all(history.run.state in FINAL for history in histories):
        return ()
    return reader.read_book(only=()).instances


def _waiting(
    reader: Reader, histories: Sequence[RunHistory], now_ms: int
) -> Mapping[RunUid, tuple[Waiting, ...]]:
    """Ask the scheduler only where one of these may wait: it looks at all runs to say why."""
    if all(history.run.state in FINAL for history in histories):
        return {}
    return waiting_reasons(reader.read_book(), now_ms=now_ms)


@router.get("/runs/{name:path}/why")
def explain_run(name: str, sources: FromSources, reader: SomeReader) -> Why:
    """Explain why a run waits, with numbers, or how it ended."""
    detail = show_run(name, sources, reader)
    now_ms = sources.now_ms()
    run = current_run(reader.read_runs([name]), name).run
    events = reader.read_resource_events(ResourceKey("run", name))
    book = reader.read_book()
    at_work = at_work_lines(run, book, events, now_ms=now_ms)
    return explain(
        detail,
        at_work=at_work,
        instances=book.instances,
        silence=silence_limit(run, book),
        now_ms=now_ms,
    )


@router.get("/runs/{name:path}")
def show_run(name: str, sources: FromSources, reader: SomeReader) -> RunDetail:
    """Show a run with all its attempts and jobs."""
    history = current_run(reader.read_runs([name]), name)
    logs = sources.open_logs()
    now_ms = sources.now_ms()
    return run_detail(
        history,
        instances=_hosts(reader, (history,)),
        waiting=_waiting(reader, (history,), now_ms).get(history.run.uid, ()),
        arrived={job.key: logs.size(*job.key) for one in history.attempts for job in one.jobs},
        now_ms=now_ms,
    )

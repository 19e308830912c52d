"""`/runs`: where every run stands, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX, Page, page
from fleetform.api.routes.logs import current_run
from fleetform.api.sources import FromSources, MaybeReader, SomeReader
from fleetform.api.waiting import waiting_reasons
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from fleetform.views.at_work import at_work_lines
from fleetform.views.runs import RunDetail, RunRow, run_detail, run_rows
from fleetform.views.why import Why, explain

router = APIRouter(tags=["runs"])


@router.get("/runs")
def list_runs(
    sources: FromSources,
    reader: MaybeReader,
    state: Annotated[
        list[RunState] | None, Query(description="Only these; may be given often")
    ] = None,
    parent: Annotated[str | None, Query(description="Only elements of this sweep")] = None,
    archived: Annotated[bool, Query(description="Finished runs that left the tree too")] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[RunRow]:
    """List runs in order of submission."""
    if reader is None:
        return Page(items=[], next=None)
    shown = [
        history
        for history in reader.read_runs()
        if (state is None or history.run.state in state)
        and (parent is None or history.run.template.parent == parent)
        and (archived or not history.archived)
    ]
    shown.sort(key=lambda history: history.run.number)
    # Pages are cut before rows are made: ten thousand runs are read for a hundred rows.
    cut = page(shown, lambda history: history.run.number, cursor, limit)
    now_ms = sources.now_ms()
    book = reader.read_book()
    rows = run_rows(
        cut.items,
        instances=book.instances,
        waiting=waiting_reasons(book, now_ms=now_ms),
        now_ms=now_ms,
    )
    return Page(items=list(rows), next=cut.next)


@router.get("/runs/{name:path}/why")
def explain_run(name: str, sources: FromSources, reader: SomeReader) -> Why:
    """Say why a run waits, with figures, or how it ended."""
    detail = show_run(name, sources, reader)
    now_ms = sources.now_ms()
    run = current_run(reader.read_runs([name]), name).run
    events = reader.read_resource_events(ResourceKey("run", name))
    at_work = at_work_lines(run, reader.read_book(), events, now_ms=now_ms)
    return explain(detail, at_work=at_work, now_ms=now_ms)


@router.get("/runs/{name:path}")
def show_run(name: str, sources: FromSources, reader: SomeReader) -> RunDetail:
    """Show a run with all of its attempts and jobs."""
    history = current_run(reader.read_runs([name]), name)
    book = reader.read_book()
    now_ms = sources.now_ms()
    return run_detail(
        history,
        instances=book.instances,
        waiting=waiting_reasons(book, now_ms=now_ms).get(history.run.uid, ()),
        now_ms=now_ms,
    )

"""`/events`: what happened, in the ledger's order."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX, Page, number_place, write_cursor
from fleetform.api.sources import MaybeReader
from fleetform.views.history import EventRow, event_rows

router = APIRouter(tags=["events"])


@router.get("/events")
def list_events(
    reader: MaybeReader,
    run: Annotated[
        str | None, Query(description="Only events of this run, or of this sweep and its elements")
    ] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[EventRow]:
    """
    List events, oldest first.

    `next` is never null here: pass that of the last page to get later events.
    """
    after = number_place(cursor)
    events = reader.read_events(run=run, after=after, limit=limit) if reader is not None else ()
    last = events[-1].number if events else after
    return Page(items=list(event_rows(events)), next=write_cursor(last))

"""`/overrides`: limited-time overrides of the configuration, and their authors."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import EVERYTHING, LIMIT_DEFAULT, LIMIT_MAX, Page, page
from fleetform.api.sources import FromSources, MaybeReader
from fleetform.model.override import PastOverride, holding
from fleetform.views.overrides import OverrideRow, override_rows

router = APIRouter(tags=["overrides"])


@router.get("/overrides")
def list_overrides(
    sources: FromSources,
    reader: MaybeReader,
    past: Annotated[bool, Query(description="Include expired and lifted overrides")] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[OverrideRow]:
    """List the overrides in force, newest first, with target, expiry, user and reason."""
    if reader is None:
        return Page(items=[], next=None)
    now_ms = sources.now_ms()
    # What is in force is never cut off by what came after it and is over.
    found = (
        reader.read_past_overrides(limit=EVERYTHING)
        if past
        else [PastOverride(one) for one in holding(reader.read_overrides(), now_ms)]
    )
    rows = sorted(override_rows(found, now_ms=now_ms), key=lambda row: -row.number)
    return page(rows, lambda row: -row.number, cursor, limit)

"""`/overrides`: what people put above the tree for a while, and who."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX
from fleetform.api.sources import FromSources, MaybeReader
from fleetform.model.override import PastOverride, holding
from fleetform.views.overrides import OverrideRow, override_rows

router = APIRouter(tags=["overrides"])


@router.get("/overrides")
def list_overrides(
    sources: FromSources,
    reader: MaybeReader,
    past: Annotated[bool, Query(description="Those that are over or lifted too")] = False,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> list[OverrideRow]:
    """List what is in force above the tree, newest first: what, until when, who, and why."""
    if reader is None:
        return []
    now_ms = sources.now_ms()
    if past:
        return list(override_rows(reader.read_past_overrides(limit=limit), now_ms=now_ms))
    # What is in force is never cut off by what came after it and is over.
    held = [PastOverride(one) for one in holding(reader.read_overrides(), now_ms)]
    return list(override_rows(reversed(held), now_ms=now_ms))[:limit]

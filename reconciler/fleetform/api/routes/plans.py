"""`/plans`: what was applied, by whom, and the plans themselves."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from fleetform.agents.host import VERSION
from fleetform.api.page import EVERYTHING, LIMIT_DEFAULT, LIMIT_MAX, Page, newest_first
from fleetform.api.problem import not_found
from fleetform.api.sources import MaybeReader, SomeReader
from fleetform.plan.serialize import load
from fleetform.views.history import ApplyRow, HistoryRow, apply_rows, history_rows
from fleetform.views.plan import json as plan_json
from fleetform.views.resources import withhold_plan

router = APIRouter(tags=["plans"])


@router.get("/plans")
def list_plans(
    reader: MaybeReader,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[ApplyRow]:
    """List the applies, newest first, each with the digest of its plan."""
    found = reader.read_applies(limit=EVERYTHING) if reader is not None else ()
    rows = apply_rows(found)
    return newest_first(rows, lambda row: row.started_at_ms, lambda row: row.uid, cursor, limit)


@router.get("/history")
def list_history(
    reader: MaybeReader,
    applies: bool = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[HistoryRow]:
    """List plans and applies, newest first; with `applies`, only applies."""
    found = reader.read_history(limit=EVERYTHING, applies_only=applies) if reader else ()
    rows = history_rows(found)
    return newest_first(
        rows, lambda row: row.at_ms, lambda row: f"{row.apply_uid}{row.plan}", cursor, limit
    )


# A plan has a schema of its own, which is closed, so that no text of a time is put into it.
@router.get("/plans/{digest}", response_class=JSONResponse)
def show_plan(digest: str, reader: SomeReader) -> dict[str, Any]:
    """
    Show a plan that was applied, as `fleetform plan --format json` prints it.

    The values of `env` are withheld.
    """
    body = reader.read_plan(digest)
    if body is None:
        raise not_found("plan", digest, "`/api/v1/plans` lists the plans that were applied")
    return {**plan_json.to_json(withhold_plan(load(body)), version=VERSION)}

"""`/plans`: what was applied, by whom, and the plans themselves."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from fleetform.agents.host import VERSION
from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX
from fleetform.api.problem import not_found
from fleetform.api.sources import MaybeReader, SomeReader
from fleetform.plan.file import load
from fleetform.views import plan_json
from fleetform.views.applies import ApplyRow, apply_rows
from fleetform.views.history import HistoryRow, history_rows
from fleetform.views.withheld import withhold_plan

router = APIRouter(tags=["plans"])


@router.get("/plans")
def list_plans(
    reader: MaybeReader,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> list[ApplyRow]:
    """List the latest applies, newest first, each with the digest of its plan."""
    return list(apply_rows(reader.read_applies(limit=limit))) if reader is not None else []


@router.get("/history")
def list_history(
    reader: MaybeReader,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
    applies: bool = False,
) -> list[HistoryRow]:
    """List plans and applies, newest first; with `applies`, no plan that was only shown."""
    if reader is None:
        return []
    return list(history_rows(reader.read_history(limit=limit, applies_only=applies)))


@router.get("/plans/{digest}")
def show_plan(digest: str, reader: SomeReader) -> dict[str, Any]:
    """
    Show a plan that was applied, as `fleetform plan --format json` prints it.

    The values of `env` are withheld.
    """
    body = reader.read_plan(digest)
    if body is None:
        raise not_found("plan", digest, "`/api/v1/plans` lists the plans that were applied")
    return {**plan_json.to_json(withhold_plan(load(body)), version=VERSION)}

"""`/environments`: the environment that this process serves."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX, Page, page
from fleetform.api.problem import not_found
from fleetform.api.sources import FromSources, MaybeReader
from fleetform.views.environments import EnvironmentRow, environment_row

router = APIRouter(tags=["environments"])


@router.get("/environments")
def list_environments(
    sources: FromSources,
    reader: MaybeReader,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[EnvironmentRow]:
    """List the environments; one process serves one."""
    return page([_row(sources, reader)], lambda row: row.name, cursor, limit)


@router.get("/environments/{name}")
def show_environment(name: str, sources: FromSources, reader: MaybeReader) -> EnvironmentRow:
    """
    Show one environment by its name or its fingerprint.

    The fingerprint is a short digest of the `uid` in `environment.yaml`: it tells environments of one name apart.
    """
    row = _row(sources, reader)
    if name not in {row.name, row.fingerprint}:
        raise not_found("environment", name, f"this process serves `{row.name}`")
    return row


def _row(sources: FromSources, reader: MaybeReader) -> EnvironmentRow:
    live = reader.read_live() if reader is not None else None
    return environment_row(
        sources.environment, live, controller=sources.controller(), now_ms=sources.now_ms()
    )

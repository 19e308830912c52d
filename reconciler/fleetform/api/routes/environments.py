"""`/environments`: the environment that this process serves."""

from __future__ import annotations

from fastapi import APIRouter

from fleetform.api.problem import not_found
from fleetform.api.sources import FromSources, MaybeReader
from fleetform.views.environments import EnvironmentRow, environment_row

router = APIRouter(tags=["environments"])


@router.get("/environments")
def list_environments(sources: FromSources, reader: MaybeReader) -> list[EnvironmentRow]:
    """List the environments; one process serves one."""
    live = reader.read_live() if reader is not None else None
    row = environment_row(
        sources.environment, live, controller=sources.controller(), now_ms=sources.now_ms()
    )
    return [row]


@router.get("/environments/{name}")
def show_environment(name: str, sources: FromSources, reader: MaybeReader) -> EnvironmentRow:
    """Show one environment by its name or its fingerprint."""
    row = list_environments(sources, reader)[0]
    if name not in {row.name, row.fingerprint}:
        raise not_found("environment", name, f"this process serves `{row.name}`")
    return row

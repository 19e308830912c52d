"""`/resources`: what was applied last, of all kinds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fleetform.api.page import LIMIT_DEFAULT, LIMIT_MAX, Page, page
from fleetform.api.problem import not_found
from fleetform.api.sources import MaybeReader, SomeReader
from fleetform.spec.desired import ResourceKey
from fleetform.views.resources import ResourceDetail, ResourceRow, resource_detail, resource_rows

router = APIRouter(tags=["resources"])


@router.get("/resources")
def list_resources(
    reader: MaybeReader,
    kind: Annotated[str | None, Query(description="`fleet`, `volume` or `run`")] = None,
    archived: Annotated[
        bool, Query(description="Include finished runs that were removed from the configuration")
    ] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Page[ResourceRow]:
    """List resources, sorted by address."""
    rows = resource_rows(reader.read_live()) if reader is not None else ()
    shown = [
        row
        for row in rows
        if (kind is None or row.kind == kind) and (archived or row.state != "archived")
    ]
    # `fleet/a-b` sorts before `fleet/a/…` by address and not by key: the page needs one order.
    shown.sort(key=lambda row: row.address)
    return page(shown, lambda row: row.address, cursor, limit)


@router.get("/resources/{kind}/{name:path}")
def show_resource(kind: str, name: str, reader: SomeReader) -> ResourceDetail:
    """Show one resource with its document; the values of `env` are withheld."""
    live = reader.read_live()
    found = live.resources.get(ResourceKey(kind, name))
    if found is None:
        raise not_found(kind, name, "`/api/v1/resources` lists all resources")
    return resource_detail(live, found)

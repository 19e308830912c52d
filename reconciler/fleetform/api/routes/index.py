"""
Where to start: a page at `/` for people, `/api/v1` for programs, and what supervisors ask.

The page is one file without scripts, styles or addresses of other sites, so that it is the same on
a machine without a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from fleetform.api.page import Page
from fleetform.api.sources import FromSources, MaybeReader

PREFIX = "/api/v1"

router = APIRouter(tags=["index"])


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One route of the API. `path` has `{…}` where a name goes."""

    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class Alive:
    """The process answers. The ledger is not checked."""

    status: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The ledger can be read. `ledger` is `ready`, `empty` (before the first apply) or `recovering`."""

    status: str
    ledger: str


@router.get("/healthz")
def check_alive() -> Alive:
    """Check that the process answers."""
    return Alive("ok")


@router.get("/readyz")
def check_ready(reader: MaybeReader) -> Ready:
    """Check that the ledger can be read; the status is 503 if it cannot."""
    return Ready("ok", "empty" if reader is None else reader.read_overview().status.value)


@router.get(PREFIX)
def list_routes(request: Request) -> Page[RouteRow]:
    """List the routes of the API."""
    return Page(items=list(_routes(request.app.openapi())), next=None)


@router.get("/", include_in_schema=False)
def show_page(request: Request, sources: FromSources) -> HTMLResponse:
    """Show the routes to people."""
    name = escape(sources.environment.name)
    rows = "\n".join(
        f"<tr><td>{_link(one.path)}</td><td>{escape(one.summary)}</td></tr>"
        for one in _routes(request.app.openapi())
    )
    return HTMLResponse(_PAGE.format(name=name, rows=rows, prefix=PREFIX))


def _routes(document: Mapping[str, Any]) -> Iterator[RouteRow]:
    for path, operations in document["paths"].items():
        if path.startswith(f"{PREFIX}/"):
            yield RouteRow(path, operations["get"]["description"].partition("\n")[0])


def _link(path: str) -> str:
    text = f"<code>{escape(path)}</code>"
    return text if "{" in path else f'<a href="{escape(path)}">{text}</a>'


_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>fleetform: {name}</title></head>
<body>
<h1>fleetform: {name}</h1>
<p>This process serves the read-only API of one environment.
The API is described at <a href="{prefix}/openapi.json"><code>{prefix}/openapi.json</code></a> (OpenAPI);
<a href="/healthz"><code>/healthz</code></a> and <a href="/readyz"><code>/readyz</code></a> are health checks.</p>
<table>
<tr><th align="left">Route</th><th align="left">Answer</th></tr>
{rows}
</table>
</body>
</html>
"""

"""
The app: routes under `/api/v1`, one shape of errors, and the guard before all of it.

`app` fills the ports and runs it. FastAPI's own pages with documentation are off, because their
scripts come from another site: `/` lists the routes, `/api/v1/openapi.json` describes everything.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from fleetform.api.guard import Guard, allowed_hosts
from fleetform.api.problem import ApiProblem, ProblemBody, shortened
from fleetform.api.routes import (
    environments,
    events,
    index,
    logs,
    overrides,
    plans,
    resources,
    runs,
)
from fleetform.api.routes.index import PREFIX
from fleetform.api.sources import Sources
from fleetform.model.leadership import Holder
from fleetform.model.ports import LogStore, Reader
from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable
from fleetform.spec.desired import Environment
from fleetform.views.json_value import moment_name, with_moments

# Moments as text: each `…_at_ms` of an answer also has `…_at` in RFC 3339, UTC.
#
# Rows have milliseconds alone, so that no row can say two different times. The text is put in
# where an answer becomes JSON, and into the description likewise: routes know nothing of it.

_VERBATIM = frozenset({"document"})
"""What people wrote, with names of their own."""


class MomentsResponse(JSONResponse):
    """An answer in which each moment is text as well."""

    def render(self, content: Any) -> bytes:
        return super().render(_filled(content))


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if isinstance(value, dict):
        return with_moments(
            {name: one if name in _VERBATIM else _filled(one) for name, one in value.items()}
        )
    return value


def describe_moments(document: dict[str, Any]) -> None:
    """Add the texts to the models of a description."""
    for schema in document.get("components", {}).get("schemas", {}).values():
        properties = schema.get("properties", {})
        for name, one in list(properties.items()):
            text = moment_name(name)
            if text is None or text in properties:
                continue
            may_be_null = {"type": "null"} in one.get("anyOf", ())
            words = {"type": "string", "format": "date-time"}
            properties[text] = {
                "title": text.replace("_", " ").title(),
                "description": f"`{name}` in RFC 3339, UTC.",
                **({"anyOf": [words, {"type": "null"}]} if may_be_null else words),
            }
            if name in schema.get("required", ()):
                schema["required"].append(text)


_log = logging.getLogger(__name__)
_ROUTERS = (environments.router, resources.router, plans.router, logs.router, runs.router,
            events.router, overrides.router)  # fmt: skip


def create_app(
    reader_factory: Callable[[], Reader | None],
    logs_factory: Callable[[], LogStore],
    *,
    environment: Environment,
    controller: Callable[[], Holder | None],
    now_ms: Callable[[], int],
    listen_host: str = "127.0.0.1",
) -> ASGIApp:
    """
    Make the app of one environment, behind its guard.

    Args:
        reader_factory: Opens the ledger for one request; None where nothing was applied yet.
        logs_factory: Opens the store of output.
        environment: Which environment this is.
        controller: Says who holds its manager lease; None where no controller is running.
        now_ms: Wall time in milliseconds, for ages and durations.
        listen_host: Where it will listen: requests for other hosts are refused.
    """
    api = create_api()
    api.state.sources = Sources(environment, reader_factory, logs_factory, controller, now_ms)
    return Guard(api, hosts=allowed_hosts(listen_host))


class _Api(FastAPI):
    """FastAPI's app, whose description has moments as they are answered."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            describe_moments(super().openapi())
        return super().openapi()


def create_api() -> FastAPI:
    """Make the routes and their errors, without anything to answer from."""
    api = _Api(
        title="fleetform",
        version=importlib.metadata.version("fleetform"),
        description="Read one environment: the same data as the command line shows.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        # A path with one slash too many is another path, and its answer names no address.
        redirect_slashes=False,
        default_response_class=MomentsResponse,
        responses={
            "4XX": {"model": ProblemBody, "description": "The error in the request"},
            "5XX": {"model": ProblemBody, "description": "The error of the server"},
        },
    )
    api.include_router(index.router)
    for router in _ROUTERS:
        api.include_router(router, prefix=PREFIX, dependencies=[Depends(_refuse_unknown_fields)])
    api.add_exception_handler(ApiProblem, _answer_problem)
    api.add_exception_handler(HTTPException, _answer_http)
    api.add_exception_handler(RequestValidationError, _answer_invalid)
    api.add_exception_handler(LedgerUnavailable, _answer_away)
    api.add_exception_handler(LedgerUnusable, _answer_away)
    api.add_exception_handler(Exception, _answer_fault)
    return api


def _refuse_unknown_fields(request: Request) -> None:
    """
    Refuse a query field that the route does not have.

    Ignored, a misspelt filter would be answered with everything.
    """
    known = sorted(field.alias for field in request.scope["route"].dependant.query_params)
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is None:
        return
    names = ", ".join(f"`{name}`" for name in known)
    raise ApiProblem(
        400,
        "invalid",
        f"this route has no query field `{shortened(unknown)}`",
        f"its query fields are {names}" if known else "it has no query fields",
    )


def _answer(status: int, code: str, message: str, advice: str = "") -> JSONResponse:
    body = ProblemBody(code=code, message=message, advice=advice)
    return JSONResponse(body.model_dump(), status_code=status)


def _answer_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiProblem)
    return JSONResponse(error.body.model_dump(), status_code=error.status)


def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code != 404:
        return _answer(error.status_code, "http", str(error.detail))
    message = f"there is no route {shortened(request.url.path)}"
    return _answer(404, "not-found", message, f"{PREFIX}/openapi.json lists all routes")


def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
    )
    return _answer(400, "invalid", wrong, f"see {PREFIX}/openapi.json")


def _answer_away(request: Request, error: Exception) -> JSONResponse:
    # The sentence names files and servers: it is for people who may read the log.
    _log.warning("the ledger cannot be read: %s", error)
    advice = "try again in a moment; the log of `fleetform serve` has the cause"
    return _answer(503, "ledger", "the ledger cannot be read now", advice)


def _answer_fault(request: Request, error: Exception) -> JSONResponse:
    """Answer in the one shape; the exception goes to the log of `serve`, and not here."""
    advice = "report it with the traceback in the log of `fleetform serve`"
    return _answer(500, "fault", "fleetform has an internal error", advice)


# The API's own description: `schemas/openapi.json`, made from the routes.
#
# Written by `fleetform schema --write` and compared by `--check`, so that a change of the API is
# a change in review.


def openapi_text() -> str:
    """Write the description as the file has it: sorted, so that reviews show changes only."""
    return json.dumps(description(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def description() -> dict[str, Any]:
    """Return the description. It holds no address: where the API listens is asked for."""
    document: dict[str, Any] = create_api().openapi()
    return document

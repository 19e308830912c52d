"""
Where answers come from: ports, filled by who composes the app.

A reader is opened for each request and closed after it: requests run on threads of a pool,
and a connection to SQLite belongs to the thread that opened it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from fleetform.api.problem import ApiProblem
from fleetform.model.leadership import Holder
from fleetform.model.ports import LogStore, Reader
from fleetform.spec.desired import Environment


@dataclass(frozen=True, slots=True)
class Sources:
    """
    What the API reads.

    `open_reader` returns None where nothing has been applied yet. `controller` says who holds the
    manager lease. `now_ms` is wall time.
    """

    environment: Environment
    open_reader: Callable[[], Reader | None]
    open_logs: Callable[[], LogStore]
    controller: Callable[[], Holder | None]
    now_ms: Callable[[], int]


def sources_of(request: Request) -> Sources:
    found: Sources = request.app.state.sources
    return found


def maybe_reader(sources: Annotated[Sources, Depends(sources_of)]) -> Iterator[Reader | None]:
    """Open the ledger for one request; None where there is none yet."""
    reader = sources.open_reader()
    try:
        yield reader
    finally:
        if reader is not None:
            reader.close()


def some_reader(reader: Annotated[Reader | None, Depends(maybe_reader)]) -> Reader:
    """Refuse what cannot be answered before the first apply."""
    if reader is None:
        raise ApiProblem(
            404,
            "not-found",
            "nothing has been applied in this environment yet",
            "`fleetform apply` creates the resources that its configuration declares",
        )
    return reader


FromSources = Annotated[Sources, Depends(sources_of)]
MaybeReader = Annotated[Reader | None, Depends(maybe_reader)]
SomeReader = Annotated[Reader, Depends(some_reader)]

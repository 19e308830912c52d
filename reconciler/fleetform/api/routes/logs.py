"""`/runs/{name}/logs`: what a run printed, in pieces by offset."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from fleetform.api.problem import not_found
from fleetform.api.sources import FromSources, SomeReader
from fleetform.model.figures import counted
from fleetform.model.ports import RunHistory
from fleetform.model.run import Attempt

router = APIRouter(tags=["runs"])

# One answer; what a browser or a script takes without noticing.
_PIECE_BYTES_MAX = 1 << 20


class LogPiece(BaseModel):
    """A piece of the output of one rank: standard output and standard error in one stream."""

    run: str
    attempt: int
    rank: int
    offset: int
    text: str = Field(description="Output as UTF-8; U+FFFD replaces invalid bytes.")
    next: int = Field(
        description="Pass it as `offset` to read on; equal to `offset` at the end of the output."
    )
    complete: bool = Field(description="True if the output has ended.")


# Before `/runs/{name}`, whose name may contain slashes.
@router.get("/runs/{name:path}/logs")
def read_logs(
    name: str,
    sources: FromSources,
    reader: SomeReader,
    attempt: Annotated[
        int | None, Query(ge=1, description="The number of the attempt; the latest by default")
    ] = None,
    rank: Annotated[int, Query(ge=0)] = 0,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[
        int, Query(ge=1, le=_PIECE_BYTES_MAX, description="The largest number of bytes")
    ] = 1 << 16,
) -> LogPiece:
    """Read output, starting at `offset`."""
    chosen = _attempt(current_run(reader.read_runs([name]), name), attempt)
    if rank >= len(chosen.jobs):
        raise not_found(
            "rank", str(rank), f"attempt {chosen.number} has {counted(len(chosen.jobs), 'rank')}"
        )
    store = sources.open_logs()
    where = (chosen.run_uid, chosen.number, rank)
    # Asked for first: what comes between the two is then read with the next piece.
    complete = store.is_complete(*where)
    data, after = store.read(*where, offset, limit)
    whole = _whole_letters(data)
    return LogPiece(
        run=name,
        attempt=chosen.number,
        rank=rank,
        offset=offset,
        text=whole.decode("utf-8", "replace"),
        next=after - (len(data) - len(whole)),
        complete=complete,
    )


def current_run(found: tuple[RunHistory, ...], name: str) -> RunHistory:
    """
    Choose the run of the tree before one that has left it.

    `found` is what the ledger has under the name; for a sweep's that is all of its elements.
    """
    named = [history for history in found if history.run.name == name]
    if not named:
        advice = f"/api/v1/runs?parent={name} lists its elements" if found else ""
        raise not_found("run", name, advice or "/api/v1/runs lists the runs")
    return min(named, key=lambda history: history.archived)


def _attempt(history: RunHistory, number: int | None) -> Attempt:
    if not history.attempts:
        raise not_found("attempt", "1", f"the run is {history.run.state}")
    if number is None:
        return history.attempts[-1]
    for attempt in history.attempts:
        if attempt.number == number:
            return attempt
    raise not_found("attempt", str(number), f"the latest attempt is {history.attempts[-1].number}")


def _whole_letters(data: bytes) -> bytes:
    """
    Leave a letter that the piece's end cuts in two for the next piece.

    RFC 3629 section 3: a letter has at most four bytes, and all but its first are 10xxxxxx.
    """
    for back in range(1, min(4, len(data))):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < length else data
    return data

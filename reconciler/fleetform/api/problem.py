"""Errors of the API: one shape for all, with what to do next."""

from __future__ import annotations

from pydantic import BaseModel


class ProblemBody(BaseModel):
    """The body of every answer with a status from 400."""

    code: str
    """Stable, for programs: `not-found`, `cursor`, `invalid`, `method`, `host`, `ledger`."""
    message: str
    """One sentence for people."""
    advice: str = ""
    """What to do next; may be empty."""


class ApiProblem(Exception):
    """Ends a request with `status` and a body."""

    def __init__(self, status: int, code: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = ProblemBody(code=code, message=message, advice=advice)


_SHOWN_MAX = 60


def shortened(text: str) -> str:
    """Cut what was asked for to what a sentence can hold."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def not_found(kind: str, name: str, advice: str = "") -> ApiProblem:
    return ApiProblem(
        404, "not-found", f"there is no {shortened(kind)} `{shortened(name)}`", advice
    )

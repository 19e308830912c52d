"""
How many runs of a group, or elements of one document, run at a time.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fleetform.spec.kinds.base import Model, Name, Whole


class Concurrency(Model):
    """A limit on the number of runs or elements that run at a time."""

    group: Name | None = None
    """
    The name of the group of runs that share the limit. Default: the elements of this document.
    Example: `gpu-tests`.
    """

    limit: Annotated[Whole, Field(ge=1)]
    """The number of runs or elements that may run at a time. Example: `1`."""


def _concurrency(value: Any) -> Any:
    return {"limit": value} if isinstance(value, int | str) else value


ConcurrencySpec = Annotated[
    Concurrency, BeforeValidator(_concurrency, json_schema_input_type=int | Concurrency)
]

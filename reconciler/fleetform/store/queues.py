"""Which fleets a queue leads to; its row is its document, which `document_rows` writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["read_queues"]


def read_queues(connection: Statements) -> tuple[dict[str, tuple[str, ...]], str]:
    """Read the fleets of each queue, by its name, and the name of the default queue or nothing."""
    fleets: dict[str, tuple[str, ...]] = {}
    default = ""
    for name, text in connection.execute(
        "SELECT name, document FROM resources WHERE kind = 'queue' ORDER BY name"
    ):
        document = json.loads(text)
        fleets[name] = tuple(document.get("fleets", ()))
        if document.get("default"):
            default = name
    return fleets, default

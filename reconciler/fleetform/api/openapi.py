"""
The API's own description: `schemas/openapi.json`, made from the routes.

Written by `fleetform schema --write` and compared by `--check`, so that a change of the API is
a change in review.
"""

from __future__ import annotations

import json
from typing import Any

from fleetform.api.app import create_api


def openapi_text() -> str:
    """Write the description as the file has it: sorted, so that reviews show changes only."""
    return json.dumps(description(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def description() -> dict[str, Any]:
    """Return the description. It holds no address: where the API listens is asked for."""
    document: dict[str, Any] = create_api().openapi()
    return document

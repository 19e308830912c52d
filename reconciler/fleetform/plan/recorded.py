"""
What a recorded plan holds back, read without the rest of it.

The plan of ten thousand new runs is 20 MB of JSON, and a reader of an environment's state
waits for the answer. `plan.serialize.load` reads a plan that is to be carried out, and checks its digest.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fleetform.model.plan import Held
from fleetform.plan.serialize import held_of

__all__ = ["recorded_holds"]

# Keys are sorted. No document can have the first three of a plan side by side, with such values.
_HELD = re.compile(rb'"format":"fleetform-plan","format_version":\d+,"held":')
_DESTROYS = re.compile(rb'"destroys":true,"digest":"[0-9a-f]*","environment_fingerprint":"')
_SCOPE = b'"scope":{"excludes":['


def recorded_holds(body: bytes) -> tuple[Held, ...] | None:
    """
    Read the changes that a plan as `plan.serialize.dump` wrote it holds back.

    None where it says nothing of the whole configuration: it is of a part, or for `destroy`.
    """
    if (found := _HELD.search(body)) is None or _DESTROYS.search(body):
        return None
    # The last one: a document before it may have a key of that name.
    place = body.rfind(_SCOPE)
    scope = _value(body, place + len(b'"scope":')) if place >= 0 else {}
    if scope.get("targets") or scope.get("excludes"):
        return None
    return held_of(_value(body, found.end()))


def _value(body: bytes, at: int) -> Any:
    value, _end = json.JSONDecoder().raw_decode(body[at:].decode("utf-8", "surrogatepass"))
    return value

"""
Views as JSON values: what `--format json` prints and what the API answers is made here, once.

Field names are the keys. A key is never left out: what is not known is null. Beside a moment in
milliseconds (`started_at_ms`) stands the same as text (`started_at`, RFC 3339, UTC).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from fleetform.views.moments import moment

_MOMENTS = ("at_ms", "since_ms", "until_ms")
"""How fields end that hold a moment; other names with `_ms` hold a duration."""


def moment_name(field: str) -> str | None:
    """Name the text field of a moment, `started_at` of `started_at_ms`; None for no moment."""
    is_moment = field in _MOMENTS or field.endswith(tuple(f"_{one}" for one in _MOMENTS))
    return field.removesuffix("_ms") if is_moment else None


def with_moments(row: Mapping[str, Any]) -> dict[str, Any]:
    """Put the text of each moment behind it; what the row has already stays."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        found[name] = value
        text = moment_name(name)
        if text is not None and text not in row:
            found[text] = None if value is None else moment(value)
    return found


def to_json(value: Any) -> Any:
    """
    Turn a row, or anything made of rows, into JSON values.

    A named tuple is an address (`fleet/local`), so it becomes its text.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return with_moments(
            {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
        )
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(to_json(item) for item in value)
    return value

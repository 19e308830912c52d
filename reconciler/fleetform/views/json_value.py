"""
Views as JSON values: what `--format json` prints and what the API answers is made here, once.

Field names are the keys. A key is never left out: what is not known is null.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any


def to_json(value: Any) -> Any:
    """
    Turn a row, or anything made of rows, into JSON values.

    A named tuple is an address (`fleet/local`), so it becomes its text.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
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

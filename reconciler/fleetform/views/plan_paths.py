"""
A field's path taken apart, and values put where paths say: `env.LR`, `files["a.py"].sha256`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["nested", "path_parts"]

_PART = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<place>\"(?:[^\"\\]|\\.)*\"|\d+)\]")


def path_parts(path: str) -> list[str | int]:
    """The keys and places on the way to a field; places are whole numbers."""
    return [
        found["name"] if found["name"] is not None else json.loads(found["place"])
        for found in _PART.finditer(path)
    ]


def nested(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """
    A mapping with each value at its path.

    A place in a list is a key like any other: of a list that is known in part, nobody can say what
    stands before it. A value at a path below that of another one is the other one's matter.
    """
    whole: dict[str, Any] = {}
    for path, value in values:
        *above, last = [str(part) for part in path_parts(path)] or [path]
        inside: Any = whole
        for part in above:
            inside = inside.setdefault(part, {}) if isinstance(inside, dict) else None
        if isinstance(inside, dict):
            inside[last] = value
    return whole

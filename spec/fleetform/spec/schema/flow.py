"""
Values as YAML in flow style: how an example is shown, and how an editor has to insert a text.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents


def flow(value: Any) -> str:
    """The value on one line, its texts quoted only where they have to be."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str) and _is_plain(value):
        return value
    return json.dumps(value, ensure_ascii=False)


@functools.cache
def _is_plain(text: str) -> bool:
    """Whether the text without quotes is read as itself, wherever it stands."""
    nodes, findings = read_documents(f"[{text}]".encode(), "example")
    return not findings and len(nodes) == 1 and plain(nodes[0]) == [text]

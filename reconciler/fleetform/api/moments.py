"""
Moments as text: each `…_at_ms` of an answer also has `…_at` in RFC 3339, UTC.

Rows have milliseconds alone, so that no row can say two different times. The text is put in
where an answer becomes JSON, and into the description likewise: routes know nothing of it.
"""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse

from fleetform.views.json_value import moment_name, with_moments

__all__ = ["MomentsResponse", "describe_moments"]

_VERBATIM = frozenset({"document"})
"""What people wrote, with names of their own."""


class MomentsResponse(JSONResponse):
    """An answer in which each moment is text as well."""

    def render(self, content: Any) -> bytes:
        return super().render(_filled(content))


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if isinstance(value, dict):
        return with_moments(
            {name: one if name in _VERBATIM else _filled(one) for name, one in value.items()}
        )
    return value


def describe_moments(document: dict[str, Any]) -> None:
    """Add the texts to the models of a description."""
    for schema in document.get("components", {}).get("schemas", {}).values():
        properties = schema.get("properties", {})
        for name, one in list(properties.items()):
            text = moment_name(name)
            if text is None or text in properties:
                continue
            may_be_null = {"type": "null"} in one.get("anyOf", ())
            words = {"type": "string", "format": "date-time"}
            properties[text] = {
                "title": text.replace("_", " ").title(),
                "description": f"`{name}` in RFC 3339, UTC.",
                **({"anyOf": [words, {"type": "null"}]} if may_be_null else words),
            }
            if name in schema.get("required", ()):
                schema["required"].append(text)

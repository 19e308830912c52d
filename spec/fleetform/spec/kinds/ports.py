"""
Ports: `8000`, `80:8000`, `*:8000`, `{container_port: 8000}`.

The port that a program listens on, and the port on the machine of the attached user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from fleetform.spec.kinds.base import Model, Whole, one_or_many, refuse, within
from fleetform.spec.kinds.resources import text
from fleetform.spec.quantities.ranges import EXPRESSION, from_one_to, shown, unfit, whole_text

PORT_MAX = 65_535

_DIGITS = from_one_to(PORT_MAX)

_Number = Annotated[Whole, Field(ge=1, le=PORT_MAX)]

Port = Annotated[
    _Number,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": PORT_MAX},
                text(_DIGITS),
            ]
        }
    ),
]

_MAPPING = re.compile(r"(?:(\d{1,9}|\*):)?(\d{1,9})", re.ASCII)


class PortMapping(Model):
    """A port of a job, and the local port that is forwarded to it."""

    local_port: Port | None = None
    """The port on the machine of the attached user. Default: any free port. Example: `8080`."""

    container_port: Port
    """The port on which the program listens. Example: `8000`."""


def _port(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    match = _MAPPING.fullmatch(str(value).strip()) if not _is_huge(value) else None
    if match is None:
        raise refuse(
            "bad-value",
            f"{shown(value)} is not a port.",
            "Write for example `8000`, or `8080:8000` to reach it at another one.",
        )
    local_port, port = match[1] or match[2], match[2]
    for one in {local_port, port} - {"*"}:
        if not 1 <= int(one) <= PORT_MAX:
            raise refuse(
                "bad-value", f"{shown(one)} is not a port; ports are from 1 to {PORT_MAX}."
            )
    mapping = {"container_port": port}
    return mapping if local_port == "*" else {"local_port": local_port, **mapping}


def _is_huge(value: str | int) -> bool:
    # Python writes no integers of more than 4300 digits.
    return isinstance(value, int) and abs(value) > 10**9


_NUMBER = Annotated[int, Field(ge=1, le=PORT_MAX)]
_SERVICE_DIGITS = whole_text(f"(?:{_DIGITS}:)?{_DIGITS}")
_RUN_DIGITS = whole_text(rf"(?:(?:{_DIGITS}|\*):)?{_DIGITS}")
_TEXT = Annotated[str, Field(pattern=f"{_RUN_DIGITS}|{EXPRESSION}")]

Ports = Annotated[
    tuple[
        Annotated[
            PortMapping,
            BeforeValidator(_port, json_schema_input_type=_NUMBER | _TEXT | PortMapping),
        ],
        ...,
    ],
    BeforeValidator(
        lambda value: [value] if isinstance(value, int) else one_or_many(value),
        json_schema_input_type=_NUMBER | _TEXT | PortMapping | list[_NUMBER | _TEXT | PortMapping],
    ),
]


def _service_port(value: Any) -> Any:
    """The port that a service listens on. dstack allows a second one in front, and does not use it."""
    if isinstance(value, str) and value.strip().startswith("*"):
        raise refuse("bad-value", f"{shown(value)} is not a port.", "Write for example `8000`.")
    mapping = _port(value)
    if not isinstance(mapping, Mapping):
        raise unfit(value, "a port, such as 8000")
    try:
        return PortMapping.model_validate(mapping).container_port
    except ValidationError as exc:
        raise within(exc, PortMapping, "service") from None


_SERVICE_TEXT = Annotated[str, Field(pattern=f"{_SERVICE_DIGITS}|{EXPRESSION}")]
ServicePort = Annotated[
    _Number,
    BeforeValidator(_service_port, json_schema_input_type=_NUMBER | _SERVICE_TEXT | PortMapping),
]

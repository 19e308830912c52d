"""
What becomes of a job whose host has not been heard of for a while.

Silence is no proof of an end: a job is waited for. A run may ask for the other choice, at its
own risk: its jobs end by themselves when nobody has reached their host for so long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import control, per_kind
from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Model, refuse
from fleetform.spec.quantities.ranges import shown, unfit

_STOP = re.compile(r"stop\s+after\s+(.+)", re.IGNORECASE)


class Silence(Model):
    """What a job does while its host cannot be reached."""

    action: Literal["wait", "stop"]
    """`wait`: the job continues to run. `stop`: the job ends after `after`. Example: `stop`."""

    after: Annotated[Duration, Field(ge=60), per_kind(run=control())] | None = None
    """
    How long the host must have been unreachable, at least one minute. Only for `action: stop`.
    Example: `10m`.
    """


def _silence(value: Any) -> Any:
    if isinstance(value, Mapping | Silence):
        return value
    if not isinstance(value, str):
        raise refuse("wrong-type", str(unfit(value, "`wait`, or `stop after 10m`")))
    stop = _STOP.fullmatch(value.strip())
    if stop is not None:
        return {"action": "stop", "after": stop[1]}
    if value.strip() == "wait":
        return {"action": "wait"}
    raise refuse(
        "bad-value",
        f"{shown(value)} is neither `wait` nor `stop after` a time.",
        "Write for example `stop after 10m`.",
    )


def _check_silence(value: Silence) -> Silence:
    if (value.action == "stop") != (value.after is not None):
        raise refuse(
            "contradiction",
            "`after` sets when to stop, and requires `action: stop`.",
            "Write `stop after 10m`, or `wait`.",
        )
    return value


SilenceSpec = Annotated[
    Silence,
    BeforeValidator(_silence, json_schema_input_type=str | Silence),
    AfterValidator(_check_silence),
]

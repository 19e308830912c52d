"""
Retry: which ends of an attempt are followed by another, and how many, and when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Entries, Model, Whole, each_once, one_or_many, refuse
from fleetform.spec.quantities.ranges import unfit

_EVENTS = ("error", "interruption", "no-capacity", "node-failure", "preemption", "time-limit")
# `retry: true` of dstack is everything that may pass by itself. A time limit does not: the next
# attempt would meet it as well.
_TRUE = tuple(event for event in _EVENTS if event != "time-limit")

Event = Literal["error", "interruption", "no-capacity", "node-failure", "preemption", "time-limit"]


def _add_alias(schema: dict[str, Any]) -> None:
    schema["properties"]["on_events"] = {**schema["properties"]["on"], "x-same-as": "on"}


class Retry(Model):
    """When and how often a failed run is attempted again."""

    model_config = ConfigDict(json_schema_extra=_add_alias)

    on: (
        Annotated[
            tuple[Event, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=Event | Entries[Event]),
            AfterValidator(each_once("event")),
        ]
        | None
    ) = None
    """
    The events after which the run is attempted again; `on_events` is the same field. Default: all
    except `time-limit`; also without `error` if `requeue_exit_codes` is set. `error`: a command
    failed. `interruption`: the host was taken away. `no-capacity`: no host was available.
    `node-failure`: the host failed. `preemption`: another run took its place. `time-limit`: the
    attempt exceeded `max_duration`. Example: `[error, preemption]`.
    """

    max_attempts: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    """The largest number of attempts, including the first. Default: no limit. Example: `3`."""

    duration: Duration | None = None
    """
    The time after submission within which a new attempt may begin. Default: no limit. Example:
    `48h`.
    """

    delay: Duration | None = None
    """
    The delay before the second attempt; it doubles with each further attempt. Default: the second
    attempt starts at once, and the delay grows from 1 second. Example: `30s`.
    """

    requeue_exit_codes: (
        Annotated[
            tuple[Annotated[Whole, Field(ge=1, le=255)], ...],
            AfterValidator(each_once("exit code")),
        ]
        | None
    ) = None
    """Exit codes, from 1 to 255, after which the run is attempted again. Example: `[75, 130]`."""

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        if self.on is None:
            # What is meant has one spelling; nobody who reads the document has to know the rule.
            coded = self.requeue_exit_codes is not None
            canonical["on"] = [event for event in _TRUE if not (coded and event == "error")]
        return canonical


def _retry(value: Any) -> Any:
    if value is True:
        return {"on": list(_TRUE)}
    if isinstance(value, Mapping) and "on_events" in value:
        if "on" in value:
            raise refuse("said-twice", "`on` and `on_events` are the same field.", "Keep one.")
        return {"on" if key == "on_events" else key: item for key, item in value.items()}
    if isinstance(value, Mapping | Retry) or value is None:
        return value
    if value is False:
        return None
    raise refuse("wrong-type", str(unfit(value, "`true`, or a mapping such as `{on: [error]}`")))


RetrySpec = Annotated[Retry | None, BeforeValidator(_retry, json_schema_input_type=bool | Retry)]

"""
Ending runs that hold GPUs and leave them idle.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from fleetform.spec.field_facts import unit
from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Model, Whole
from fleetform.spec.quantities import format_duration

# Loading a checkpoint takes minutes in which no GPU does anything; dstack has the same bound.
WINDOW_SECONDS_MIN = 300


def _window(value: int) -> int:
    if value < WINDOW_SECONDS_MIN:
        least = format_duration(WINDOW_SECONDS_MIN)
        raise ValueError(
            f"`{format_duration(value)}` is too short: a run that loads its data would be mistaken for idle;"
            f" the least is `{least}`."
        )
    return value


class UtilizationPolicy(Model):
    """The least GPU utilization; a run below it is ended."""

    min_gpu_utilization: Annotated[Whole, Field(le=100), unit("percent")]
    """The least utilization of each GPU, in percent. Example: `10`."""

    time_window: Annotated[Duration, AfterValidator(_window)]
    """
    How long a GPU may stay below `min_gpu_utilization` before the run is ended. Example: `30m`.
    """

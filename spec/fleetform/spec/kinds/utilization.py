"""
Ending runs that hold GPUs and leave them idle.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Model, Whole
from fleetform.spec.quantities import format_duration

# Loading a checkpoint takes minutes in which no GPU does anything; dstack has the same bound.
WINDOW_SECONDS_MIN = 300


def _window(value: int) -> int:
    if value < WINDOW_SECONDS_MIN:
        least = format_duration(WINDOW_SECONDS_MIN)
        raise ValueError(
            f"`{format_duration(value)}` is too short to tell an idle run from one that loads;"
            f" the least is `{least}`."
        )
    return value


class UtilizationPolicy(Model):
    """How busy its GPUs have to be for a run to go on."""

    min_gpu_utilization: Annotated[Whole, Field(le=100)]
    """The least that each GPU has to be used, in percent. Example: `10`."""

    time_window: Annotated[Duration, AfterValidator(_window)]
    """For how long one may be below that before the run is ended. Example: `30m`."""

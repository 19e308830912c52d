"""
A signal ahead of the end, for programs that save their state.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Model, refuse
from fleetform.spec.names import nearest
from fleetform.spec.quantities.ranges import shown

# The signals a program may use to save its state. KILL and STOP cannot be caught.
_SIGNALS = ("ALRM", "CONT", "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH", "XCPU")


def _signal(value: str) -> str:
    name = value.upper().removeprefix("SIG")
    if name not in _SIGNALS:
        close = nearest(name, _SIGNALS)
        raise refuse(
            "bad-value",
            f"{shown(value)} is not a signal for saving the state of a program.",
            (f"Did you mean `{close}`? " if close else "") + f"There is {', '.join(_SIGNALS)}.",
        )
    return name


class Checkpoint(Model):
    """A signal that is sent before an attempt is ended, so that the program can save its state."""

    signal: Annotated[str, AfterValidator(_signal)]
    """The signal, with or without `SIG`. Example: `USR1`."""

    lead: Duration
    """The time between the signal and the end of the attempt. Example: `5m`."""

"""Faults of a cloud: what the front does to the calls that a fault meets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cloud.region import Pace
from cloud.wire import Call, Refusal


@dataclass
class Fault:
    operation: str
    times: int | None = 1
    """How many calls it meets; None: every one, until it is removed."""
    refusal: Refusal | None = None
    pace: Pace | None = None
    loses_reply: bool = False
    """The call is made, and the connection ends without an answer."""
    held: threading.Event | None = None
    """The call waits before it is made, until the event is set."""
    when: Callable[[dict[str, Any]], bool] | None = None
    """Chooses calls by their parameters; None: every call of the operation."""
    met: int = 0
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when the first call has met it."""

    def meets(self, call: Call) -> bool:
        """Say whether the fault acts on this call, and count it."""
        if self.operation != call.operation or (self.when and not self.when(call.parameters)):
            return False
        if self.times is not None and self.met >= self.times:
            return False
        self.met += 1
        self.arrived.set()
        return True


def no_capacity(
    instance_type: str | None = None,
    zone: str | None = None,
    *,
    spot: bool | None = None,
    times: int | None = None,
) -> Fault:
    """EC2 has no such machines; None: of any type, in any zone, on demand or not."""

    def asked(parameters: dict[str, Any]) -> bool:
        on_spot = parameters.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
        return (
            instance_type in {None, parameters.get("InstanceType")}
            and zone in {None, parameters.get("Placement", {}).get("AvailabilityZone")}
            and spot in {None, on_spot}
        )

    named = instance_type or "requested instance type"
    refusal = Refusal(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {named} capacity in the Availability Zone you requested.",
        500,
    )
    return Fault("RunInstances", times, refusal, when=asked)


def refused(operation: str, code: str, message: str, *, status: int = 400, times: int = 1) -> Fault:
    """AWS answers an error of its own."""
    return Fault(operation, times, Refusal(code, message, status))


def throttled(operation: str, times: int = 1) -> Fault:
    """So many calls come too fast."""
    return Fault(operation, times, Refusal("RequestLimitExceeded", "Request limit exceeded.", 503))


def slow_create(seconds: float, times: int | None = None) -> Fault:
    """New instances are `pending` for so long."""
    return Fault("RunInstances", times, pace=Pace(pending_seconds=seconds))


def fails_after_create(seconds: float = 0.1, times: int = 1) -> Fault:
    """A new instance ends before it runs, as one whose host is broken or whose volume has no key."""
    return Fault("RunInstances", times, pace=Pace(dies_seconds=seconds))


def lost_reply(operation: str, times: int = 1) -> Fault:
    """The call is made, and its caller never hears of it."""
    return Fault(operation, times, loses_reply=True)


def held(operation: str, times: int | None = None) -> Fault:
    """Calls wait until `fault.held.set()`: time to kill their caller."""
    return Fault(operation, times, held=threading.Event())

"""When hosts of clouds are asked for that an earlier process could not create."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from fleetform.controllers import bought_hosts
from fleetform.controllers.bought_hosts import FAILED_MS, BoughtHosts
from fleetform.model.instance import Instance, InstanceState

HOST = Instance(
    "uid", "gpus-0", "gpus", 0, InstanceState.PROVISIONING,
    provider="aws", endpoint={"region": "us-east-1"},
)  # fmt: skip
FAILED = replace(HOST, message="the account may not do this")
CREATED = replace(HOST, endpoint={"region": "us-east-1", "id": "i-1"})


class Clock:
    """Goes on by twenty seconds with each look at it."""

    now_ms = 0

    def boot_ms(self) -> int:
        self.now_ms += 20_000
        return self.now_ms


class Bought(BoughtHosts):
    """Says which row is asked for, and when; the host has answered then."""

    def __init__(self, clock: Clock, rows: Sequence[Instance]) -> None:
        left = list(rows)

        async def row_of(uid: str) -> Instance:
            return left.pop(0) if len(left) > 1 else left[0]

        nothing = cast("Any", None)
        super().__init__(
            nothing, environment_uid="", ledger=cast("Any", self), gate=nothing, clock=cast("Any", clock),
            notices=cast("Any", self), task_group=nothing, fence=1, row_of=row_of,
        )  # fmt: skip
        self.clock = clock
        self.asked: list[tuple[Instance, int]] = []

    def refused(self, _offers: object) -> None:
        """Nothing is refused here."""

    async def create(self, instance: Instance) -> Instance:
        self.asked.append((instance, self.clock.now_ms))
        return replace(instance, install_id="install")


@pytest.mark.parametrize(
    ("first", "rows", "asked_for", "waited_ms"),
    [
        (HOST, [HOST], HOST, 0),
        (FAILED, [FAILED], FAILED, FAILED_MS),
        (FAILED, [FAILED, CREATED], CREATED, 40_000),
    ],
)
def test_a_new_controller_waits_a_minute_before_it_repeats_a_failure(
    monkeypatch, first, rows, asked_for, waited_ms
):
    """Unless an apply creates the host meanwhile; others are created at once."""
    monkeypatch.setattr(bought_hosts, "_LOOK_SECONDS", 0)
    clock = Clock()
    bought = Bought(clock, rows)
    started_ms = clock.now_ms
    asyncio.run(bought.prepare(first))
    assert bought.asked == [(asked_for, started_ms + waited_ms)]

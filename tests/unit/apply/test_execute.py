from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from contract.ledgers import (
    ENVIRONMENT,
    CountingIds,
    Desk,
    StillClock,
    enter,
    plan_of,
    step,
    submit_step,
    written,
)
from fleetform.apply.execute import Outcome, execute
from fleetform.model.instance import Instance
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.providers.contract.hosts import Host
from fleetform.simulate.controller import Silent
from fleetform.store.opening import ledger_in_memory

T = TypeVar("T")


class NoWorld:
    """A world without hosts: steps that only the ledger carries out never ask it."""

    environment_uid = ENVIRONMENT

    async def instances(self, fleet: str) -> Sequence[Instance]:
        return ()

    async def reach(self, instance: Instance) -> Host:
        raise AssertionError(instance)

    async def depart(self, instance: Instance) -> None:
        raise AssertionError(instance)

    def ends_asked(self) -> None: ...

    def volume_path(self, path: str) -> str:
        return path


class Seen(Silent):
    """What somebody at the screen would see of each step's end."""

    def __init__(self) -> None:
        self.ends: dict[str, str] = {}

    def step_finished(self, step: Step, error: str) -> None:
        self.ends[step.key] = error


async def at_once(call: Callable[[], T], /) -> T:
    return call()


def carry_out(ledger: Ledger, seen: Seen, *steps: Step) -> Outcome:
    plan = plan_of(ledger, steps)
    accepted = enter(ledger, plan)
    return asyncio.run(
        execute(
            plan,
            accepted,
            ledger=ledger,
            gate=at_once,
            world=NoWorld(),
            clock=StillClock(),
            progress=seen,
        )
    )


def test_a_step_that_the_ledger_refuses_has_failed() -> None:
    """A run that was placed meanwhile is not shown as changed, and the others are."""
    desk = Desk.of(ledger_in_memory(ENVIRONMENT, CountingIds(), now_ms=0))
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a")
    changed = written({"type": "task", "commands": ["false"]})
    first, second = (step("run.update", name, **changed) for name in ("a", "b"))
    seen = Seen()
    outcome = carry_out(desk.ledger, seen, first, second)
    sentence = "run a has started, so its execution was not changed"
    assert outcome.failed == {first.key: sentence}
    assert outcome.done == [second.key]
    assert outcome.summary == "1 steps done, 1 failed, 0 not tried"
    assert seen.ends == {first.key: sentence, second.key: ""}

from __future__ import annotations

import asyncio

from fleetform.controllers.tree import Look, NotNow, Planned, TreeKeeper
from fleetform.model.plan import Permissions, Plan
from fleetform.model.ports import LedgerUnavailable, PolicyRefused
from fleetform.plan.planner import plan
from fleetform.simulate.controller import Silent
from fleetform.simulate.loop import VirtualLoop, run
from fleetform.simulate.scenario import ENVIRONMENT_UID, make_desired
from fleetform.store.opening import ledger_in_memory
from unit.controllers.rig import CountingIds, pool


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def test_a_plan_that_cannot_be_entered_is_made_again() -> None:
    """A file edited meanwhile, a full disk, or a window that has opened, is said once and does not end `serve`."""
    obstacles: list[Exception] = [
        NotNow("a.py has changed"),
        NotNow("a.py has changed"),
        LedgerUnavailable("the disk is full"),
        PolicyRefused("freeze window: holidays"),
    ]
    entered: list[Plan] = []
    told = Told()
    ledger = ledger_in_memory(ENVIRONMENT_UID, CountingIds(), now_ms=0)
    made = plan(make_desired(pool(1), {}), ledger.read_live(), permissions=Permissions(), now_ms=0)

    async def make_plan() -> Planned:
        return Planned(made, ())

    async def accept(plan: Plan) -> None:
        if obstacles:
            raise obstacles.pop(0)
        entered.append(plan)

    async def story() -> None:
        keeper = TreeKeeper(lambda: Look("content"), make_plan, accept, told)
        keeping = asyncio.create_task(keeper.keep())
        await asyncio.sleep(10)
        assert not keeping.done()
        keeping.cancel()

    run(story(), VirtualLoop())
    assert entered == [made]
    assert told.notices == [
        "planning again in a moment: a.py has changed",
        "planning again in a moment: the disk is full",
        "not applied: freeze window: holidays",
    ]

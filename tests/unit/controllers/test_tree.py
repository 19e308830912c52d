from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Unpack

from fleetform.controllers.tree import Look, NotNow, Planned, TreeKeeper
from fleetform.model.history import Notice, NoticeFacts
from fleetform.model.plan import Permissions, Plan
from fleetform.model.ports import LedgerUnavailable, PolicyRefused
from fleetform.plan.planner import plan
from fleetform.store.opening import ledger_in_memory
from simulation.controller import Silent
from simulation.loop import VirtualLoop, run
from simulation.scenario import ENVIRONMENT_UID, make_desired
from unit.controllers.rig import CountingIds, pool


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.events: list[tuple[str, str]] = []

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        self.notices.append(text)
        self.events.append((facts["event"], facts.get("level", "INFO")))


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
        "planning again soon: a.py has changed",
        "planning again soon: the disk is full",
        "not applied: freeze window: holidays",
    ]


def broken(file: str, line: int) -> Notice:
    return Notice(file, f"{file}:{line}: broken", f"{file}: whole", "document.invalid")


def blocked(name: str) -> Notice:
    return Notice(name, f"blocked: {name}", f"no longer blocked: {name}", "change.blocked")


def test_each_notice_is_said_once_and_so_is_its_end() -> None:
    """A second problem does not repeat the first, and the end of one does not repeat the other."""
    steps = [
        Planned(_empty(), (broken("a.yaml", 1),), (blocked("fleet/a"),)),
        Planned(_empty(), (broken("a.yaml", 1),), (blocked("fleet/a"), blocked("fleet/b"))),
        Planned(_empty(), (), (blocked("fleet/b"),)),
        Planned(None, (broken("environment.yaml", 2),)),
        Planned(_empty(), (), ()),
    ]
    told = Told()

    async def make_plan() -> Planned:
        return steps[0] if len(steps) == 1 else steps.pop(0)

    async def accept(_plan: Plan) -> None:
        raise AssertionError("nothing changes")

    contents = iter(range(1000))

    async def story() -> None:
        keeper = TreeKeeper(lambda: Look(next(contents)), make_plan, accept, told)
        keeping = asyncio.create_task(keeper.keep())
        await asyncio.sleep(10)
        keeping.cancel()

    run(story(), VirtualLoop())
    warning = "WARNING"
    assert list(zip(told.notices, told.events, strict=True)) == [
        ("a.yaml:1: broken", ("document.invalid", warning)),
        ("blocked: fleet/a", ("change.blocked", warning)),
        ("blocked: fleet/b", ("change.blocked", warning)),
        ("a.yaml: whole", ("document.invalid.over", "INFO")),
        ("no longer blocked: fleet/a", ("change.blocked.over", "INFO")),
        ("environment.yaml:2: broken", ("document.invalid", warning)),
        ("environment.yaml: whole", ("document.invalid.over", "INFO")),
        ("no longer blocked: fleet/b", ("change.blocked.over", "INFO")),
    ]


def test_it_looks_less_often_when_nothing_changes_for_long() -> None:
    """A look is a `stat` a file; after an edit it is often again."""
    looks: list[float] = []
    contents = [1]

    async def make_plan() -> Planned:
        return Planned(_empty(), ())

    async def accept(_plan: Plan) -> None:
        raise AssertionError("nothing changes")

    async def story() -> None:
        loop = asyncio.get_running_loop()

        def look() -> Look:
            looks.append(loop.time())
            return Look(contents[0])

        keeping = asyncio.create_task(TreeKeeper(look, make_plan, accept, Told()).keep())
        await asyncio.sleep(100)
        contents[0] = 2
        await asyncio.sleep(30)
        keeping.cancel()

    run(story(), VirtualLoop())
    began = looks[0]

    def looked(since: float, until: float) -> int:
        return sum(began + since <= at < began + until for at in looks)

    assert looked(0, 60) == 120
    assert looked(70, 100) == 15
    assert looked(103, 123) == 40


def _empty() -> Plan:
    ledger = ledger_in_memory(ENVIRONMENT_UID, CountingIds(), now_ms=0)
    made = plan(make_desired(pool(1), {}), ledger.read_live(), permissions=Permissions(), now_ms=0)
    return replace(made, changes=())

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import applied
from fleetform.controllers.mirror import Mirror
from fleetform.lifecycle.patience import kept_by_silence
from fleetform.model.plan import Permissions
from fleetform.model.run import RunState
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.simulate.controller import Silent
from fleetform.simulate.scenario import make_desired
from fleetform.wiring import applying
from fleetform.wiring.applying import exit_code
from fleetform.wiring.planning import make_plan
from fleetform.wiring.problems import RecoveringProblem
from fleetform.wiring.workspace import Workspace
from unit.controllers.rig import Rig, pool, task


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def test_a_run_that_nobody_knows_about_has_not_succeeded() -> None:
    """An apply that ends while a host is silent says so by its code."""
    rig = Rig({"one": 60})
    desired = make_desired(pool(1), {"one": task()})

    async def story() -> None:
        made = rig.plan(desired)
        await rig.apply(desired)
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        (instance,) = rig.ledger.read_live().instances
        rig.ledger.mark_instance(instance.uid, state="unreachable", message="silent", now_ms=1)
        unknown = rig.ledger.read_runs(["one"])
        assert unknown[0].run.state is RunState.UNKNOWN
        assert exit_code(made, (), unknown, detached=False) == 4
        assert exit_code(made, (), unknown, detached=True) == 0

    rig.play(story())


def test_a_moment_of_silence_ends_no_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is started again is back within a second; only long silence is an end."""
    apply = applying._Apply.__new__(applying._Apply)
    apply._ending = {}
    apply._unknown_since_ms = None
    apply._told = ()
    apply._makes_hosts = True
    nothing = Mirror()
    monkeypatch.setattr(applying, "SILENCE_MS", 30)
    assert apply._are_settled({"a": RunState.DONE, "b": None}, nothing)
    assert not apply._are_settled({"a": RunState.DONE, "b": RunState.UNKNOWN}, nothing)
    assert not apply._are_settled({"a": RunState.RUNNING}, nothing)
    assert not apply._are_settled({"a": RunState.UNKNOWN}, nothing)
    asyncio.run(asyncio.sleep(0.05))
    assert apply._are_settled({"a": RunState.UNKNOWN}, nothing)


def test_a_run_without_any_host_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can start where there is no fleet: said once, and it is over after a while."""
    told = Told()
    apply = applying._Apply.__new__(applying._Apply)
    apply._ending = {}
    apply._unknown_since_ms, apply._told, apply._progress = None, (), told
    apply._makes_hosts = apply._homeless = False
    monkeypatch.setattr(applying, "SILENCE_MS", 30)
    nothing, waiting = Mirror(), {"a": RunState.SUBMITTED, "b": RunState.PENDING}
    assert not apply._are_settled(waiting, nothing)
    assert not apply._are_settled(waiting, nothing)
    time.sleep(0.05)
    assert apply._are_settled(waiting, nothing)
    assert told.notices == ["no fleet has a host, and a and 1 more wait for one"]
    (message,) = apply._left_waiting()
    assert "`fleetform plan`" in message
    # Where this very plan makes hosts they are on their way.
    apply._makes_hosts = True
    assert not apply._are_settled(waiting, nothing)


def test_a_silent_host_is_named_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it, and what depends on that, counts as settled after a while; others not."""
    rig = Rig({"one": 60})
    desired = make_desired(
        pool(1), {"one": task(), "next": task(depends_on={"runs": [{"run": "one"}]})}
    )
    monkeypatch.setattr(applying, "SILENCE_MS", 30)

    async def story() -> None:
        await rig.apply(desired)
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        (instance,) = rig.ledger.read_live().instances
        rig.ledger.mark_instance(instance.uid, state="unreachable", message="off", now_ms=1)
        book = rig.ledger.read_book()
        assert kept_by_silence(book) == {"one": (instance.name,), "next": (instance.name,)}
        told = Told()
        apply = applying._Apply.__new__(applying._Apply)
        apply._ending = {}
        apply._unknown_since_ms, apply._told, apply._progress = None, (), told
        apply._makes_hosts = apply._homeless = False
        states = {name: book.outcomes[name].state for name in ("one", "next")}
        assert not apply._are_settled(states, book)
        time.sleep(0.05)  # noqa: ASYNC251 -- the clock asked is real, and the loop's is virtual
        assert apply._are_settled(states, book)
        assert told.notices == [f"host {instance.name} is silent, and 2 runs wait for an answer"]
        (message,) = apply._left_waiting()
        assert instance.name in message
        assert exit_code(rig.plan(desired), (), rig.ledger.read_runs(), detached=False) == 4

    rig.play(story())


@pytest.mark.parametrize("detach", [True, False])
def test_who_does_not_wait_leaves_a_slow_manager_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detach: bool
) -> None:
    """Steps are waited for, whoever does them, and by who said so only so long."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    monkeypatch.setattr(applying, "HANDED_OVER_MS", 200)
    # Somebody manages, and does nothing at all.
    monkeypatch.setattr(applying, "try_manage", lambda *_, **__: None)
    holder = SimpleNamespace(command="serve", pid=1)
    monkeypatch.setattr(Workspace, "manager", lambda _: holder)
    root = applied.write_tree(tmp_path / "lab", applied.FLEET)
    workspace = Workspace.open(str(root))
    plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)

    async def story() -> applying.ApplyResult:
        async with asyncio.timeout(2):
            return await applying.apply_plan(
                workspace, plan, who="ada", detach=detach, progress=Silent()
            )

    if not detach:
        with pytest.raises(TimeoutError):
            asyncio.run(story())
        return
    result = asyncio.run(story())
    assert (result.state, result.exit_code) == ("handed-over", 0)


def test_who_takes_over_from_a_manager_asks_the_world_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manager that has gone need not have asked: an older ledger is found out all the same."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    root = applied.write_tree(tmp_path / "lab", applied.FLEET)
    workspace = Workspace.open(str(root))
    plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)
    uid = workspace.environment.uid
    stranger = InstanceSeen("7" * 32, "pool-7", "pool", uid, "", 0, alive=True)

    async def inventory(_: str) -> list[InstanceSeen]:
        return [stranger]

    there = [SimpleNamespace(command="serve", pid=1)]
    monkeypatch.setattr(Workspace, "manager", lambda _: there.pop() if there else None)
    monkeypatch.setattr(applying, "host_provider", lambda _: SimpleNamespace(inventory=inventory))
    with pytest.raises(RecoveringProblem, match="pool-7 remembers this environment"):
        asyncio.run(applying.apply_plan(workspace, plan, who="ada", detach=True, progress=Silent()))

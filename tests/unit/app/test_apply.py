from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import applied
from fleetform.app import apply as applying
from fleetform.app import handover
from fleetform.app.apply import failed_steps
from fleetform.app.plan import make_plan
from fleetform.app.problems import RecoveringProblem
from fleetform.app.workspace import Workspace
from fleetform.model.apply import ApplyRecord
from fleetform.model.leadership import Holder
from fleetform.model.plan import Permissions
from fleetform.model.run_state import RunState
from fleetform.providers.contract.observed import InstanceSeen
from simulation.controller import Silent


class Ended(SimpleNamespace):
    """A ledger that has one apply, which is over."""

    def read_apply(self, _uid: str) -> ApplyRecord:
        return self.record


@pytest.mark.parametrize(
    ("state", "summary", "sentences"),
    [
        ("done", "2 steps done", ()),
        ("running", "", ()),
        (
            "failed",
            "1 step done\nvolume/v: no space",
            ("volume/v: no space",),
        ),
        ("interrupted", "the ledger was rebuilt meanwhile", ("the ledger was rebuilt meanwhile",)),
    ],
)
def test_what_ended_early_has_failed(state: str, summary: str, sentences: tuple[str, ...]) -> None:
    """Also when no step did: who rebuilds the ledger ends what others have entered."""
    record = SimpleNamespace(state=state, summary=summary)
    assert failed_steps(Ended(record=record), "a") == sentences


@pytest.mark.parametrize("detach", [True, False])
def test_who_does_not_wait_leaves_a_slow_manager_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detach: bool
) -> None:
    """Steps are waited for, whoever does them, and by who said so only so long."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    monkeypatch.setattr(applying, "HANDED_OVER_MS", 200)
    # Somebody manages, and does nothing at all.
    monkeypatch.setattr(handover, "try_manage", lambda *_, **__: None)
    holder = SimpleNamespace(command="serve", pid=1)
    monkeypatch.setattr(Workspace, "manager", lambda _: holder)
    root = applied.write_tree(tmp_path / "lab", applied.FLEET)
    workspace = Workspace.open(str(root))
    plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)

    async def story() -> applying.ApplyResult:
        async with asyncio.timeout(60 if detach else 2):
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
    with pytest.raises(RecoveringProblem, match="pool-7 knows this environment"):
        asyncio.run(applying.apply_plan(workspace, plan, who="ada", detach=True, progress=Silent()))


def test_who_leaves_a_plan_to_a_manager_that_hangs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process holds its lock all the same: it is named after a while, with what helps."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    monkeypatch.setattr(handover, "ACTS_MS", 50)
    monkeypatch.setattr(handover, "try_manage", lambda *_, **__: None)
    holder = Holder(1, "serve", "serve", 0, "node1")
    monkeypatch.setattr(Workspace, "manager", lambda _: holder)
    root = applied.write_tree(tmp_path / "lab", applied.FLEET)
    workspace = Workspace.open(str(root))
    plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)

    async def story() -> str:
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        class Told(Silent):
            def notice(self, message: str, **_about: object) -> None:
                if "has not started to apply" in message:
                    told.set_result(message)

        following = asyncio.create_task(
            applying.apply_plan(workspace, plan, who="ada", detach=False, progress=Told())
        )
        async with asyncio.timeout(60):
            message = await told
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return message

    message = asyncio.run(story())
    assert message.startswith("serve (pid 1 on node1) has not started to apply this plan")
    assert "`fleetform lock break --force" in message


def test_a_run_that_ends_between_two_looks_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows another process reads the states, and then whether all is over."""
    run = SimpleNamespace(name="short", state=RunState.RUNNING, message="")
    shown: list[RunState] = []

    async def gate(call: Callable[[], object]) -> object:
        return call()

    async def end(_apply: object, _gate: object) -> bool:
        run.state = RunState.DONE
        return True

    monkeypatch.setattr(applying._Apply, "_is_over", end)
    apply = object.__new__(applying._Apply)
    holder = SimpleNamespace(command="serve", pid=1)
    apply.workspace = SimpleNamespace(manager=lambda: holder)
    apply.ledger = SimpleNamespace(
        serial=lambda: 1,
        read_operations=lambda _: [],
        read_runs=lambda _: [SimpleNamespace(run=run)],
    )
    apply.progress = SimpleNamespace(
        notice=lambda _: None, run_changed=lambda one, _: shown.append(one.state)
    )
    apply.accepted = SimpleNamespace(apply_uid="a")
    apply.plan = SimpleNamespace(steps=())
    apply._names = ["short"]
    apply._leaves_at_ms = None
    assert asyncio.run(apply._follow(gate))
    assert shown == [RunState.RUNNING, RunState.DONE]

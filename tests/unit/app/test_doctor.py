"""Who may become the controller of hosts on a cloud: a process on a machine that has what the cloud needs."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import applied
from fleetform.app.apply import apply_plan
from fleetform.app.clock import SystemClock
from fleetform.app.doctor import require_tools
from fleetform.app.ledger import open_for_writing
from fleetform.app.managing import is_requested, try_manage
from fleetform.app.plan import make_plan
from fleetform.app.problems import Problem
from fleetform.app.serve import serve
from fleetform.app.workspace import Workspace
from fleetform.model.apply import StepOutcome
from fleetform.model.leadership import BACKGROUND
from fleetform.model.plan import Permissions
from fleetform.plan.exit import ERROR
from simulation.controller import Silent

TASK = "type: task\nname: train\ncommands: [echo hi]\n"
LACKING = "this machine cannot control fleet/gpus: the Pulumi CLI is not installed"


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.is_followed = asyncio.Event()

    def notice(self, text: str, **_about: object) -> None:
        self.notices.append(text)
        if text.endswith("applies the plan"):
            self.is_followed.set()


@pytest.fixture(autouse=True)
def without_pulumi(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))


def environment(tmp_path, *documents: str) -> Workspace:
    return Workspace.open(str(applied.write_tree(tmp_path / "lab", *documents)))


def planned(workspace: Workspace):
    now_ms = SystemClock().now_ms()
    return make_plan(workspace, workspace.load(), Permissions(), now_ms=now_ms)


def test_the_ledger_and_the_plan_say_which_clouds_are_needed(tmp_path) -> None:
    """A plan may bring the first fleet on a cloud; from then on the ledger has it, also without hosts."""
    workspace = environment(tmp_path, applied.FLEET, applied.AWS_FLEET)
    require_tools(workspace)
    with pytest.raises(Problem, match=LACKING) as raised:
        require_tools(workspace, planned(workspace))
    assert raised.value.advice.startswith("run `fleetform doctor --install-pulumi`")
    applied.enter(workspace.root)
    with pytest.raises(Problem, match=LACKING):
        require_tools(workspace)


def test_other_environments_need_nothing(tmp_path) -> None:
    """Neither of this machine nor of hosts over SSH is anything asked."""
    workspace = environment(tmp_path, applied.FLEET)
    require_tools(workspace, planned(workspace))
    applied.enter(workspace.root)
    require_tools(workspace)


def test_serve_is_refused(tmp_path) -> None:
    """Before it takes the environment; its configuration says so where the ledger does not yet."""
    workspace = environment(tmp_path, applied.AWS_FLEET)
    told = Told()
    assert asyncio.run(serve(workspace, listen=None, progress=told, once=True)) == ERROR
    assert any(LACKING in one for one in told.notices)
    assert workspace.read(lambda reader: reader.read_live().resources, {}) == {}

    applied.enter(workspace.root)
    with pytest.raises(Problem, match=LACKING):
        asyncio.run(serve(workspace, listen=None, progress=told, once=True))


def test_an_apply_leaves_the_environment_to_its_controller(tmp_path) -> None:
    """A background controller that can create and release hosts goes on, and the plan is entered for it."""
    workspace = environment(tmp_path, applied.FLEET, applied.AWS_FLEET)
    applied.enter(workspace.root)
    applied.write_tree(workspace.root, applied.FLEET, applied.AWS_FLEET, TASK)
    plan, told = planned(workspace), Told()
    with pytest.raises(Problem, match=LACKING):
        asyncio.run(apply_plan(workspace, plan, who="ada", detach=True, progress=told))
    lease = try_manage(workspace, who="bert", command=BACKGROUND)
    assert lease is not None

    async def apply() -> str:
        with contextlib.closing(open_for_writing(workspace)) as ledger:
            applying = asyncio.ensure_future(
                apply_plan(workspace, plan, who="ada", detach=True, progress=told)
            )
            async with asyncio.timeout(60):
                await told.is_followed.wait()
            found = ledger.unfinished_apply()
            assert found is not None
            # The controller has carried it out.
            uid, now_ms = found[0].apply_uid, applied.NOW_MS
            outcomes = [StepOutcome(step.key) for step in plan.steps]
            ledger.finish_steps(uid, plan.steps, outcomes, now_ms=now_ms)
            ledger.finish_apply(uid, state="done", summary="all done", now_ms=now_ms)
            return (await applying).state

    with lease:
        assert asyncio.run(apply()) == "done"
        assert not is_requested(workspace)
    assert "stays the controller" in told.notices[0]
    assert LACKING in told.notices[0]

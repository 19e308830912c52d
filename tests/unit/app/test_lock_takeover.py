"""Taking over: one person at a time, and not before `serve` has let go."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import pytest

import applied
from fleetform.app import lock as taking_over
from fleetform.app.ledger import host_provider, open_for_writing
from fleetform.app.managing import try_manage
from fleetform.app.problems import Locked
from fleetform.app.serve import _Serving, takeover
from fleetform.app.workspace import Workspace
from fleetform.model.leadership import ManagerLease
from fleetform.model.override import Override, OverrideKind
from fleetform.store.gate import WriterGate
from simulation.controller import Silent


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    root = applied.write_tree(tmp_path / "lab", applied.FLEET)
    applied.enter(root)
    return Workspace.open(str(root))


def _take(workspace: Workspace, who: str) -> Override:
    return asyncio.run(
        taking_over.take_over(
            workspace, who=who, reason="GPU swap", for_ms=60_000, progress=Silent()
        )
    )


def _overrides(workspace: Workspace) -> tuple[Override, ...]:
    with closing(open_for_writing(workspace)) as ledger:
        return ledger.read_overrides()


def test_a_takeover_says_who_why_and_until_when(workspace: Workspace) -> None:
    """It is one override of the ledger, and shows wherever overrides do."""
    taken = _take(workspace, "ada")
    (row,) = _overrides(workspace)
    assert row == taken
    assert (row.kind, row.who, row.reason) == (OverrideKind.TAKEOVER, "ada", "GPU swap")
    assert row.until_ms is not None
    assert row.until_ms - row.since_ms == 60_000


def test_two_people_do_not_take_over_at_once(workspace: Workspace) -> None:
    """The second is told who, and how it ends; the first may prolong it."""
    first = _take(workspace, "ada")
    with pytest.raises(Locked, match="ada has already taken over") as caught:
        _take(workspace, "eve")
    assert f"emergency lift {first.number}" in caught.value.advice
    again = _take(workspace, "ada")
    assert [one.number for one in _overrides(workspace)] == [again.number]


def test_it_waits_until_serve_has_let_go(workspace: Workspace) -> None:
    """Another apply is followed and not waited for."""
    manager_lease = try_manage(workspace, who="serve", command="serve")
    assert manager_lease is not None
    timer = threading.Timer(0.3, manager_lease.release)
    timer.start()
    _take(workspace, "ada")
    assert workspace.manager() is None
    timer.join()
    with try_manage(workspace, who="eve", command="apply") or pytest.fail("not free"):
        _take(workspace, "ada")


def test_a_takeover_between_the_look_and_the_lock_is_seen(
    workspace: Workspace, monkeypatch
) -> None:
    """`serve` had looked before it, and manages nothing all the same."""
    asyncio.run(_serve_while(workspace, monkeypatch))
    assert workspace.manager() is None


async def _serve_while(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(workspace: Workspace, *, who: str, command: str) -> ManagerLease | None:
        with closing(open_for_writing(workspace)) as ledger:
            ledger.put_overrides(
                OverrideKind.TAKEOVER, (), reason="x", who="ada", now_ms=1, until_ms=None
            )
        return try_manage(workspace, who=who, command=command)

    class Heard(Silent):
        def notice(self, text: str, **_about: object) -> None:
            assert text.startswith("paused: ada has taken over")
            serving._stopped.set()

    monkeypatch.setattr("fleetform.app.handover.try_manage", late)
    monkeypatch.setattr("fleetform.app.serve.build_manager", pytest.fail)
    monkeypatch.setattr("fleetform.app.serve.stop_on_signals", lambda *_: [])
    with closing(open_for_writing(workspace)) as ledger, closing(WriterGate()) as gate:
        hosts = host_provider(workspace)
        serving = _Serving(workspace, ledger, gate, hosts, Heard(), False, 60_000)
        async with asyncio.timeout(60):
            await serving.run()


def test_a_serve_that_does_not_let_go_is_named(workspace: Workspace, monkeypatch) -> None:
    """With its pid, and what to do; the takeover holds all the same."""
    monkeypatch.setattr(taking_over, "_WAIT_SECONDS", 0.1)
    with try_manage(workspace, who="serve", command="serve") or pytest.fail("not free"):
        with pytest.raises(Locked, match="has not released the environment") as caught:
            _take(workspace, "ada")
        assert "lock break --force" in caught.value.advice
    assert len(_overrides(workspace)) == 1


def test_only_a_takeover_that_holds_makes_serve_rest() -> None:
    """Others are for schedule and plans, and one that ran out is for nobody."""
    stop = Override(1, OverrideKind.STOP, "run/a", "x", "ada", 0)
    over = Override(2, OverrideKind.TAKEOVER, "", "x", "ada", 0, 10)
    holds = Override(3, OverrideKind.TAKEOVER, "", "x", "ada", 0, 30)
    assert takeover([stop, over], 20) is None
    assert takeover([stop, over, holds], 20) == holds

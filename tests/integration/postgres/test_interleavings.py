"""
Two connections on a real server: whoever lost the lease writes nothing, in whatever order.

For every protected call there are three orders of an old holder and its successor. PostgreSQL is
not modelled anywhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from contract.ledgers import Desk, carry_out, enter, plan_of, step, written
from fleetform.model.apply import StepOutcome
from fleetform.model.plan import Predicate
from fleetform.model.ports import Ledger, StalePlan
from fleetform.model.refusals import FenceLost
from fleetform.spec.desired import ResourceKey
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres import database
from fleetform.store.postgres.connection import Connection
from integration.postgres.interleaving import Pause, beside, is_waiting
from integration.postgres.protected import PROTECTED, Protected

Connect = Callable[[], StoredLedger]


def rows(ledger: StoredLedger) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the ledger but the serial and who manages."""
    copy = ledger.copy()._database
    with copy.read() as connection:
        names = ("resources", "instances", "runs", "attempts", "jobs", "allocations", "units",
                 "applies", "operations", "usage", "overrides", "snapshots")  # fmt: skip
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    copy.close()
    return found


def test_every_protected_call_is_here() -> None:
    """A call of the port that takes a fence is in the list below, or nobody has tried it."""
    protected = {
        name
        for name, call in inspect.getmembers(Ledger, inspect.isfunction)
        if "fence" in inspect.signature(call).parameters
    }
    assert protected == {one.name for one in PROTECTED} - {"pass_commit_point"}


@pytest.mark.parametrize("protected", PROTECTED, ids=lambda one: one.name)
def test_the_successor_waits_for_an_open_transaction(
    protected: Protected, connect: Connect
) -> None:
    """While the holder is inside a transaction nobody takes over; then both are written, in order."""
    old, new, eye = connect(), connect(), connect()
    desk = Desk.of(old, nodes=2)
    call = protected.ready(desk)
    before = rows(eye)
    with beside() as start:
        pause = Pause(old)
        calling = start(call)
        pause.wait()
        taking = start(lambda: new.take_fence(who="successor", now_ms=2))
        assert is_waiting(taking)
        assert rows(eye) == before
        pause.end()
        calling.result(20)
        assert taking.result(20) == desk.fence + 1
    assert rows(new) != before
    assert new.read_live().fence == desk.fence + 1


@pytest.mark.parametrize("protected", PROTECTED, ids=lambda one: one.name)
def test_a_takeover_in_between_stops_the_old_holder(protected: Protected, connect: Connect) -> None:
    """Who asks while the lease changes hands waits, and then learns that it has lost it."""
    old, new = connect(), connect()
    desk = Desk.of(old, nodes=2)
    call = protected.ready(desk)
    before = rows(new)
    with beside() as start:
        pause = Pause(new)
        taking = start(lambda: new.take_fence(who="successor", now_ms=2))
        pause.wait()
        calling = start(call)
        assert is_waiting(calling)
        pause.end()
        taking.result(20)
        with pytest.raises(FenceLost, match=f"successor has fence {desk.fence + 1}"):
            calling.result(20)
    assert rows(new) == before


@pytest.mark.parametrize("protected", PROTECTED, ids=lambda one: one.name)
def test_after_a_takeover_nothing_is_written(protected: Protected, connect: Connect) -> None:
    """Who comes late is refused at once, and its connection is as good as before."""
    old, new = connect(), connect()
    desk = Desk.of(old, nodes=2)
    call = protected.ready(desk)
    new.take_fence(who="successor", now_ms=2)
    before = rows(new)
    for _ in range(2):
        with pytest.raises(FenceLost, match="successor"):
            call()
    assert rows(new) == before
    assert old.read_live() == new.read_live()


WEAK = {
    "a plain SELECT": "SELECT 1 FROM leases WHERE name = ? AND fence = ?",
    "EXISTS": "SELECT 1 WHERE EXISTS (SELECT 1 FROM leases WHERE name = ? AND fence = ?)",
}


@pytest.mark.parametrize("statement", WEAK.values(), ids=WEAK)
def test_weaker_checks_let_the_old_holder_commit(
    statement: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why the row is locked: by only looking at it, the old holder writes after the takeover."""

    def look(connection: Connection, fence: int) -> None:
        assert connection.execute(statement, (database.LEASE, fence)).fetchone()

    monkeypatch.setattr(database, "_hold_lease", look)
    old, new = connect(), connect()
    desk = Desk.of(old, nodes=2)
    call = next(one for one in PROTECTED if one.name == "mark_instance").ready(desk)
    before = rows(new)
    with beside() as start:
        pause = Pause(new)
        taking = start(lambda: new.take_fence(who="successor", now_ms=2))
        pause.wait()
        calling = start(call)
        assert is_waiting(calling)
        pause.end()
        taking.result(20)
        calling.result(20)
    assert rows(new) != before


def test_a_return_waits_for_who_takes_what_was_left(connect: Connect) -> None:
    """A plan takes a volume back while another takes its data in: the second to commit is refused."""
    one, other = connect(), connect()
    desk = Desk.of(one)
    where: dict[str, object] = {"path": "/data", "fleet": "local"}
    carry_out(one, [step("volume.make", "data", **written({**where}, type="volume"), **where)])
    carry_out(one, [step("volume.forget", "data", **where)])
    (left,) = one.read_live().left
    adopting = step("volume.adopt", "found", **written({**where}, type="volume"), **where)
    accepted = enter(one, plan_of(one, [adopting]))
    one.begin_steps(accepted.apply_uid, [adopting], now_ms=1)
    back = step("volume.make", "data", **written({**where}, type="volume"), returns=left.uid)
    pin = Predicate("left", ResourceKey("volume", "data"), left.uid)
    returning = plan_of(one, [back], pin)
    with beside() as start:
        pause = Pause(one)
        outcome = [StepOutcome(adopting.key)]
        taking = start(
            lambda: one.finish_steps(
                accepted.apply_uid, [adopting], outcome, fence=desk.fence, now_ms=1
            )
        )
        pause.wait()
        entering = start(lambda: enter(other, returning))
        assert is_waiting(entering)
        pause.end()
        taking.result(20)
        with pytest.raises(StalePlan, match="another volume has its data now"):
            entering.result(20)


def test_two_plans_for_what_is_there_are_entered_once(connect: Connect) -> None:
    """Both were made of one state; who waits for the other finds it being changed."""
    one, other = connect(), connect()
    Desk.of(one)
    first, second = (
        plan_of(one, [step("fleet.update", "local", **written({"nodes": n}, instances=[]))])
        for n in (1, 2)
    )
    with beside() as start:
        pause = Pause(one)
        entering = start(lambda: enter(one, first))
        pause.wait()
        waiting = start(lambda: enter(other, second))
        assert is_waiting(waiting)
        pause.end()
        assert entering.result(20).state == "new"
        with pytest.raises(StalePlan, match="fleet/local is being changed"):
            waiting.result(20)


def test_two_writers_see_each_other(connect: Connect) -> None:
    """A writer that waited compares with what the first has committed, not with what it began with."""
    one, other = connect(), connect()
    Desk.of(one)
    with beside() as start:
        pause = Pause(one)
        first = start(one.raise_epoch)
        pause.wait()
        second = start(other.raise_epoch)
        assert is_waiting(second)
        pause.end()
        assert (first.result(20), second.result(20)) == (2, 3)

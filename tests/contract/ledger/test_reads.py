"""Reading: parts of the book, the serial, events, histories and the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from threading import Thread

import pytest

from contract.ledgers import (
    Desk,
    run_key,
    submit_step,
)
from fleetform.model.history import LoggedEvent
from fleetform.model.instance import InstanceState
from fleetform.model.live import Rows, RowsOutdated
from fleetform.model.ports import Ledger, Reader, RunQuery


def test_partial_book(desk: Desk) -> None:
    """A book of some runs has these and no others; one that is over is missing."""
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.place("b")
    over = desk.run_to_end("a")
    uid = desk.run("b").uid
    part, whole = desk.ledger.read_book([over, uid]), desk.ledger.read_book()
    assert list(part.runs) == [uid]
    assert part.attempts == {uid: whole.attempts[uid]}
    assert part.allocations == whole.allocations
    assert part.lingering == whole.lingering
    assert set(part.outcomes) == {"a", "b"}
    assert part.instances == whole.instances
    nothing = desk.ledger.read_book(())
    assert (nothing.runs, nothing.outcomes, nothing.lingering) == ({}, {}, ())
    assert nothing.instances == whole.instances


def test_a_book_of_some_instances(reopen: Callable[[], Ledger]) -> None:
    """It has these as a whole book does, and none that is terminated."""
    desk = Desk.of(reopen(), nodes=3)
    desk.submit(submit_step("a"))
    first, second, _ = desk.ledger.read_book().instances
    part = desk.ledger.read_book((), (second.uid, first.uid))
    assert part.instances == (first, second)
    desk.ledger.mark_instance(
        first.uid, state=InstanceState.TERMINATED, message="", fence=desk.fence, now_ms=20_000
    )
    part = desk.ledger.read_book([desk.run("a").uid], [first.uid])
    assert (len(part.runs), part.instances) == (1, ())
    assert desk.ledger.read_book((), ()).instances == ()
    desk.ledger.close()


def test_serial_counts_what_others_commit(reopen: Callable[[], Ledger]) -> None:
    """The serial to poll changes with another connection's commit and not with our own."""
    mine, other = reopen(), reopen()
    before = mine.serial()
    mine.take_fence(who="me", now_ms=1)
    assert mine.serial() == before
    assert mine.glance() in {before, None}
    other.take_fence(who="other", now_ms=1)
    assert mine.glance() != before
    assert mine.serial() != before
    assert mine.glance() in {mine.serial(), None}
    mine.close()
    other.close()


def test_a_glance_waits_for_nobody(reopen: Callable[[], Ledger]) -> None:
    """Who has it in the middle of a transaction is let be, and so is what is closed already."""
    mine = reopen()
    seen = []
    with mine._database.write() as transaction:
        transaction.execute("UPDATE meta SET epoch = epoch")
        thread = Thread(target=lambda: seen.append(mine.glance()))
        thread.start()
        thread.join()
    mine.close()
    assert [*seen, mine.glance()] == [None, None]


def test_commits_are_counted_whoever_makes_them(reopen: Callable[[], Ledger]) -> None:
    """A reading's serial is how many there had been; a copy from before has fewer."""
    mine, other = reopen(), reopen()
    before = mine.commits()
    assert mine.read_live().serial == before
    for writer in (mine, other):
        writer.take_fence(who="me", now_ms=1)
    assert mine.commits() == other.commits() == before + 2
    mine.close()
    other.close()


def test_events_are_numbered_and_filtered(desk: Desk) -> None:
    """Events keep their order; a run's are read by its name, a sweep's with its elements'."""
    desk.submit(submit_step("s[1]", parent="s", element="1"), submit_step("sx"))
    said = LoggedEvent("note", 5, "Hello.", run_key("s[1]"), 2, 1, {"a": [1]})
    desk.ledger.append_events([said])
    events = desk.ledger.read_events(run="s")
    assert [event.kind for event in events] == ["run.submitted", "note"]
    assert (events[1].data, events[1].attempt, events[1].rank) == ({"a": [1]}, 2, 1)
    assert desk.ledger.read_events(after=events[0].number, run="s") == events[1:]
    numbers = [event.number for event in desk.ledger.read_events(limit=3)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3


def test_history_is_for_sweeps_too(desk: Desk) -> None:
    """Runs are read by name, by their sweep's name, or all of them, in order of number."""
    desk.submit(*(submit_step(f"s[{n}]", parent="s", element=str(n)) for n in range(12)))
    desk.submit(submit_step("b"))
    assert [one.run.template.element for one in desk.ledger.read_runs(["s"])] == [
        str(n) for n in range(12)
    ]
    assert [one.run.name for one in desk.ledger.read_runs()][-1] == "b"
    assert desk.ledger.read_runs(["nobody"]) == ()
    assert desk.ledger.read_runs(["b"])[0].commit == "c0ffee"


def test_snapshot_sees_what_is_committed(desk: Desk, look: Callable[[], Reader]) -> None:
    """The read path gives what the ledger gives, while the ledger is open for writing."""
    desk.submit(submit_step("a"), submit_step("b"))
    snapshot = look()
    before = snapshot.serial()
    desk.run_to_end("a")
    assert snapshot.serial() != before
    assert snapshot.read_live() == desk.ledger.read_live()
    assert snapshot.read_book() == desk.ledger.read_book()
    assert snapshot.read_runs() == desk.ledger.read_runs()
    assert snapshot.read_events() == desk.ledger.read_events()
    assert snapshot.read_applies() == desk.ledger.read_applies()
    snapshot.close()


def test_applies_of_one_plan(desk: Desk) -> None:
    """Whoever asks for those of a plan gets them however many there have been since."""
    desk.submit(submit_step("a"))
    desk.submit(submit_step("b"))
    newest, *_, oldest = desk.ledger.read_applies()
    assert desk.ledger.read_applies_of(newest.plan_digest) == (newest,)
    assert desk.ledger.read_applies_of(oldest.plan_digest) == (oldest,)
    assert desk.ledger.read_applies_of("0" * 64) == ()


def test_copy_has_every_row(desk: Desk) -> None:
    """A copy in memory reads as the ledger does, and what is done to it stays in it."""
    desk.submit(submit_step("a"), submit_step("b"))
    desk.run_to_end("a")
    copy = desk.ledger.copy()
    for read in ("read_live", "read_book", "read_runs", "read_events", "read_applies"):
        assert getattr(copy, read)() == getattr(desk.ledger, read)()
    copy.begin_recovery("tried out")
    assert copy.read_live() != desk.ledger.read_live()
    copy.close()


def test_rows_that_are_as_declared_are_read_no_further(
    desk: Desk, look: Callable[[], Reader]
) -> None:
    """Given what is declared, the same rows come back, whole where there is more to say of them."""
    desk.submit(*(submit_step(name) for name in ("done", "failed", "waits", "changed")))
    for name, exit_code in (("done", 0), ("failed", 1), ("changed", 0)):
        desk.run_to_end(name, exit_code=exit_code)
    with closing(look()) as reader:
        whole = reader.read_live()
        known = {key: row.digest for key, row in whole.resources.items()}
        known[run_key("changed")] = known[run_key("new")] = "another"
        rows = reader.read_live(known).resources
        assert isinstance(rows, Rows)
        assert run_key("done") in rows.unchanged
        assert {key.name for key in rows.changed if key.kind == "run"} == {
            "failed",
            "waits",
            "changed",
        }
        assert rows == whole.resources
        assert list(rows) == sorted(rows)


def test_rows_are_of_one_state_or_refused(desk: Desk, look: Callable[[], Reader]) -> None:
    """Who asks for the rest after somebody has committed is told, and reads once more."""
    desk.submit(submit_step("done"))
    desk.run_to_end("done")
    with closing(look()) as reader:
        known = {key: row.digest for key, row in reader.read_live().resources.items()}
        rows = reader.read_live(known).resources
        desk.submit(submit_step("other"))
        assert run_key("done") in rows
        with pytest.raises(RowsOutdated):
            rows[run_key("done")]


def test_many_that_differ_are_read_at_once(desk: Desk, look: Callable[[], Reader]) -> None:
    """Where most rows differ, they are not asked for one by one, and come to the same."""
    desk.submit(*(submit_step(f"s[{n}]", parent="s", element=str(n)) for n in range(501)))
    with desk.ledger._database.write() as transaction:
        transaction.execute("UPDATE runs SET state = 'done', cause = ''")
    with closing(look()) as reader:
        whole = reader.read_live()
        for known in ({}, {run_key("s[7]"): whole.resources[run_key("s[7]")].digest}):
            rows = reader.read_live(known).resources
            assert len(rows.unchanged) == len(known)
            assert rows == whole.resources


def test_runs_come_in_pages_and_by_state(desk: Desk) -> None:
    """A page has the runs behind a number, at most so many, in the states that are asked for."""
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.run_to_end("a")
    everything = desk.ledger.read_runs()
    numbers = [one.run.number for one in everything]
    assert desk.ledger.read_run_page(RunQuery(0, 10)) == everything
    assert desk.ledger.read_run_page(RunQuery(0, 2)) == everything[:2]
    assert desk.ledger.read_run_page(RunQuery(numbers[0], 1)) == everything[1:2]
    assert desk.ledger.read_run_page(RunQuery(numbers[-1], 1)) == ()
    states = tuple({one.run.state for one in everything})
    assert len(states) == 2
    assert desk.ledger.read_run_page(RunQuery(0, 10, states)) == everything
    for state in states:
        assert [one.run.name for one in desk.ledger.read_run_page(RunQuery(0, 10, (state,)))] == [
            one.run.name for one in everything if one.run.state is state
        ]
    assert desk.ledger.read_run_page(RunQuery(0, 10, parent="sweep")) == ()
    assert desk.ledger.read_run_page(RunQuery(0, 10, parent="")) == everything

"""Each check finds what breaks just its claim, and a sound ledger has none."""

from __future__ import annotations

from contextlib import closing

import pytest

import applied
from contract.ledgers import ENVIRONMENT, CountingIds, Desk, submit_step
from fleetform.app.ledger import open_for_writing
from fleetform.app.workspace import Workspace
from fleetform.store.opening import ledger_in_memory
from fleetform.store.verifying import CHECKS, Flaw, find_flaws


@pytest.fixture
def desk() -> Desk:
    desk = Desk.of(ledger_in_memory(ENVIRONMENT, CountingIds(), now_ms=0))
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.run_to_end("a")
    desk.place("b")
    return desk


def _flaws(desk: Desk, *of_file: str) -> list[Flaw]:
    """Without those of plans, for which a desk writes something shorter."""
    with desk.ledger._database.read() as connection:
        return [one for one in find_flaws(connection, of_file) if one.check != "plans"]


def test_a_sound_ledger_has_no_flaw(desk: Desk) -> None:
    """With a run over, one on its host, and one that waits."""
    assert _flaws(desk) == []


def test_plans_are_read_anew(tmp_path, monkeypatch) -> None:
    """What was really applied is sound; a plan whose body was changed is told."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    root = applied.write_tree(
        tmp_path / "lab", applied.FLEET, "type: task\nname: a\ncommands: ['true']\n"
    )
    applied.enter(root)
    applied.run_all(root, exit_codes={})
    with closing(open_for_writing(Workspace.open(str(root)))) as ledger:
        assert ledger.flaws() == ()
        with ledger._database.write() as transaction:
            transaction.execute("UPDATE plans SET body = ?", (b"{}",))
        (flaw,) = ledger.flaws()
        assert (flaw.check, bool(flaw.cure)) == ("plans", True)


_BREAKS = {
    "identity": "UPDATE meta SET ledger_id = ''",
    "runs-listed": "UPDATE runs SET name = 'a', listed = 1 WHERE name = 'c'",
    "runs-rows": "UPDATE runs SET attempt = 7 WHERE name = 'b'",
    "runs-final": "UPDATE runs SET final = 0 WHERE name = 'a'",
    "jobs": "UPDATE jobs SET gen = 0 WHERE state = 'finished'",
    "allocations": "UPDATE jobs SET state = 'finished' WHERE state <> 'waiting'",
    "units": "INSERT INTO units (instance_uid, unit, job_uid)"
    " SELECT 'elsewhere', 'gpu', job_uid FROM allocations",
    "operations": "UPDATE resources SET operation = 'gone' WHERE name = 'a'",
    "documents": "UPDATE resources SET document = '{\"nodes\": 9}' WHERE name = 'a'",
}


@pytest.mark.parametrize("check", _BREAKS)
def test_a_break_is_found_and_has_a_cure(desk: Desk, check: str) -> None:
    """What no transaction of ours writes is told by its check, with what to do."""
    with desk.ledger._database.write() as transaction:
        transaction.execute(_BREAKS[check])
    flaws = _flaws(desk)
    assert check in {one.check for one in flaws}
    assert all(one.what and one.cure for one in flaws)


def test_each_check_has_a_break() -> None:
    """The table above is whole."""
    names = [check.__name__.removeprefix("check_").replace("_", "-") for check in CHECKS]
    assert names == [*_BREAKS, "plans"]
    assert all(check.__doc__ for check in CHECKS)


def test_what_the_file_says_comes_first(desk: Desk) -> None:
    """A damaged file explains what follows."""
    (flaw,) = _flaws(desk, "page 3 is damaged")
    assert (flaw.check, flaw.what) == ("file", "page 3 is damaged")


def test_a_broken_reference_is_found(desk: Desk) -> None:
    """Foreign keys are looked at by the database itself."""
    connection = desk.ledger._database.connection
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM applies")
    assert any("applies" in one.what for one in desk.ledger.flaws())

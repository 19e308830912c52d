"""To read few runs and instances costs the same however many there are."""

from __future__ import annotations

from contract.ledgers import ENVIRONMENT, CountingIds, Desk, submit_step
from fleetform.store.database import Database
from fleetform.store.opening import ledger_in_memory


def steps_of_reading(hosts: int) -> tuple[int, int]:
    """Return how many steps SQLite takes to read one run and one host, and all."""
    ledger = ledger_in_memory(ENVIRONMENT, CountingIds(), now_ms=0)
    desk = Desk.of(ledger, nodes=hosts)
    desk.submit(*(submit_step(f"run-{number}") for number in range(hosts)))
    uid = desk.run(f"run-{hosts // 2}").uid
    database = ledger._database
    assert isinstance(database, Database)
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    database.connection.set_progress_handler(count, 1)
    part = ledger.read_book([uid], [desk.instances[hosts // 2]])
    assert (len(part.runs), len(part.instances)) == (1, 1)
    of_part, steps = steps, 0
    assert len(ledger.read_book().instances) == hosts
    database.connection.set_progress_handler(None, 1)
    ledger.close()
    return of_part, steps


def test_reading_one_host_takes_no_longer_among_many() -> None:
    """All of them take ten times as long among ten times as many."""
    few, few_of_all = steps_of_reading(20)
    many, many_of_all = steps_of_reading(200)
    assert many_of_all > 5 * few_of_all
    assert many < 1.5 * few

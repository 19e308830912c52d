"""
Rates of the ledger, printed as a table a database; `python tests/bench/bench_ledger.py`.

PostgreSQL is a server of this bench's own with its defaults, beside it on the same machine;
where there is none, its table is left out with the reason.

The hot path is a thousand runs of one job each on 256 places, in the batches in which the manager
hands them in: one placement, one batch of records and one of verdicts a round.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import parser_of

from contract.ledgers import (
    ENVIRONMENT,
    CountingIds,
    Desk,
    StillClock,
    carry_out,
    enter,
    plan_of,
    submit_step,
)
from fleetform.agents.protocol.messages import JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.apply import StepOutcome
from fleetform.model.decision import Finish, Placement, Share
from fleetform.model.run import RunState
from fleetform.store.gate import WriterGate
from fleetform.store.ledger import StoredLedger
from fleetform.store.opening import open_ledger
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres, open_postgres_snapshot
from fleetform.store.reads import Reads, open_snapshot
from postgres_server import PostgresServer, reason_missing


class Table:
    def __init__(self) -> None:
        self._rows: list[tuple[str, int, float]] = []

    @contextmanager
    def row(self, name: str, number: int) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.add(name, number, time.perf_counter() - started)

    def add(self, name: str, number: int, seconds: float) -> None:
        self._rows.append((name, number, seconds))

    def show(self) -> None:
        print(f"{'what':<48}{'n':>8}{'ms':>10}{'per second':>14}")
        for name, number, seconds in self._rows:
            print(f"{name:<48}{number:>8}{seconds * 1000:>10.1f}{number / seconds:>14,.0f}")


def best_of(times: int, call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


class SqlitePlace:
    """A file in a folder that is new for each measurement."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def open(self) -> StoredLedger:
        path = Path(self._folder.name) / "ledger.db"
        return open_ledger(path, ENVIRONMENT, CountingIds(), StillClock())

    def look(self) -> Reads:
        return open_snapshot(Path(self._folder.name) / "ledger.db", ENVIRONMENT)

    def close(self) -> None:
        self._folder.cleanup()


class PostgresPlace:
    """A schema of the bench's server, dropped after each measurement."""

    def __init__(self, server: PostgresServer) -> None:
        self._address = Address.parse(server.url)

    def open(self) -> StoredLedger:
        return open_postgres(self._address, ENVIRONMENT, CountingIds(), StillClock())

    def look(self) -> Reads:
        return open_postgres_snapshot(self._address, ENVIRONMENT)

    def close(self) -> None:
        connection = Connection(self._address, schema="public")
        connection.script(f"DROP SCHEMA {schema_of(ENVIRONMENT)} CASCADE")
        connection.close()


Place = SqlitePlace | PostgresPlace


def measure_opening(table: Table, place: Place) -> None:
    with table.row("make a new ledger", 1):
        ledger = place.open()
    ledger.close()
    with table.row("open it again", 1):
        ledger = place.open()
    ledger.close()


def pieces(items: list[Any], size: int = 32) -> Iterator[list[Any]]:
    """A host's news come in pieces, and so do the verdicts on them."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def measure_runs(table: Table, place: Place, number: int = 1000, slots: int = 256) -> None:
    """Submit, place, run and finish, as the manager does it; every phase has its own row."""
    ledger = place.open()
    desk = Desk.of(ledger, cpus=slots)
    steps = [submit_step(f"a[{n}]", parent="a", element=str(n), index=n) for n in range(number)]
    with table.row("submit runs (accept, finish_steps)", number):
        carry_out(ledger, steps)
    with table.row("read_book of all", number):
        book = ledger.read_book()
    (instance,) = book.instances
    spent = dict.fromkeys(
        ("placements", "records", "verdicts", "forgotten", "read_book(only)"), 0.0
    )
    calls = 0

    def timed(what: str, call: Callable[..., Any], *values: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        started = time.perf_counter()
        result = call(*values, **named)
        spent[what] += time.perf_counter() - started
        return result

    fence = desk.fence
    news = partial(ledger.commit_records, instance.uid, cursor=None, snapshot=False)
    waiting = list(book.runs.values())
    while waiting:
        batch, waiting = waiting[:slots], waiting[slots:]
        uids = [run.uid for run in batch]
        share = Share(
            0, instance.uid, instance.generation, instance.boot_id, 1000, 1 << 20, False, 0
        )
        placements = [Placement(run.uid, run.generation, run.attempt, (share,)) for run in batch]
        held = timed("placements", ledger.commit_placements, placements, fence=fence, now_ms=2)
        assert all(held)
        records: list[JobRecord] = []
        for state in (JobState.RUNNING, JobState.FINISHED):
            part = timed("read_book(only)", ledger.read_book, uids)
            records = [
                JobRecord(job.key, job.uid, job.gen, "d", state, Cause.EXITED, 0, started_at_ms=2)
                for attempt in part.attempts.values()
                for job in attempt.jobs
            ]
            for piece in pieces(records):
                timed("records", news, piece, fence=fence, now_ms=3)
        verdicts = [(uid, Finish(RunState.DONE, "exited", "")) for uid in uids]
        for some in pieces(verdicts):
            timed("verdicts", ledger.commit_transitions, some, fence=fence, now_ms=4)
        timed("forgotten", ledger.mark_forgotten, [record.key for record in records])
    for name, seconds in spent.items():
        table.add(f"  {name}", number, seconds)
    table.add(f"all of a run's life, {calls} calls", number, sum(spent.values()))
    ledger.close()


def measure_reading(table: Table, place: Place, number: int = 10_000) -> None:
    ledger = place.open()
    steps = [
        submit_step(
            f"s[lr={n}]", parent="s", element=f"lr={n}", env={"A": "1"}, matrix={"lr": n},
            description="one of many that are alike in all but their number",
        )
        for n in range(number)
    ]  # fmt: skip
    plan = plan_of(ledger, steps)
    with table.row("accept a plan", number):
        accepted = enter(ledger, plan)
    with table.row("finish_steps of it", number):
        ledger.finish_steps(
            accepted.apply_uid, steps, [StepOutcome(one.key) for one in steps], now_ms=1
        )
    with table.row("finish_apply", number):
        ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
    ledger.close()
    snapshot = place.look()
    table.add("read_live (snapshot)", number, best_of(5, snapshot.read_live))
    table.add("read_book (snapshot)", number, best_of(3, snapshot.read_book))
    table.add("read_runs (snapshot)", number, best_of(3, snapshot.read_runs))
    table.add("serial", 1, best_of(100, snapshot.serial))
    snapshot.close()


def measure_gate(table: Table, place: Place, tasks: int = 256, each: int = 8) -> None:
    """Many tasks, each with commits of its own through one gate."""
    ledger = place.open()
    desk = Desk.of(ledger)
    gate = WriterGate()

    mark = partial(ledger.mark_instance, desk.instances[0], state="ready")

    async def work(number: int) -> None:
        for turn in range(each):
            await gate(partial(mark, message=f"{number} {turn}", now_ms=turn))

    async def all_of_them() -> None:
        await asyncio.gather(*(work(number) for number in range(tasks)))

    with table.row("commits through the gate", tasks * each):
        asyncio.run(all_of_them())
    gate.close()
    with table.row("the same without a gate", tasks * each):
        for turn in range(tasks * each):
            mark(message=str(turn), now_ms=turn)
    with (
        table.row("the same in one transaction", tasks * each),
        ledger._database.write() as transaction,
    ):
        for turn in range(tasks * each):
            transaction.execute("UPDATE instances SET message = ?", (str(turn),))
    ledger.close()


def measure(title: str, make: Callable[[], Place]) -> None:
    table = Table()
    for part in (measure_opening, measure_runs, measure_reading, measure_gate):
        place = make()
        part(table, place)
        place.close()
    print(title)
    table.show()


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of(__doc__).parse_args(arguments)
    measure("SQLite", SqlitePlace)
    reason = reason_missing()
    if reason:
        print(f"PostgreSQL is left out: {reason}")
        return
    server = PostgresServer()
    try:
        measure("PostgreSQL", lambda: PostgresPlace(server))
    finally:
        server.close()


if __name__ == "__main__":
    main()

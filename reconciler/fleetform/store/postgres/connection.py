"""
One connection to PostgreSQL with a synchronous face, like the one that sqlite3 has.

The driver is asyncpg (ADR 17). Its loop is private to the connection and runs only inside a
call, in the caller's thread; where a loop runs there already, in a thread made for the call.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import asyncpg

from fleetform.store.postgres.address import Address
from fleetform.store.postgres.errors import STARTING, is_lost

__all__ = [
    "CONNECT_SECONDS",
    "IDLE_SECONDS",
    "LOCK_SECONDS",
    "STARTING_SECONDS",
    "STATEMENT_SECONDS",
    "Connection",
    "to_postgres",
]


T = TypeVar("T")

CONNECT_SECONDS = 10.0
"""How long a server may take to accept a connection: a cloud's proxy takes two or three."""

STARTING_SECONDS = 15.0
"""How long a server that says that it is starting, or recovering, is waited for."""

_PAUSE_SECONDS = 0.1

IDLE_SECONDS = 7.0
"""
How long a transaction may stand still before the server ends it.

A process that was paused inside one holds locks which its successor needs. It was paused at most
3 s after it last renewed its lease of 10 s, so its locks are gone when its lease ends. The
longest of ours, in which a hundred thousand runs are put together between two statements, stands
still for some 2 s.
"""

LOCK_SECONDS = 10.0
"""How long a statement waits for another process's transaction, as on SQLite."""

STATEMENT_SECONDS = 60.0
"""How long one statement may take: reading a hundred thousand resources takes one."""

_KEPT_STATEMENTS = 400
"""Prepared statements of a connection; the ledger has some two hundred."""

_COUNT = re.compile(r"(?:INSERT \d+|UPDATE|DELETE) (\d+)$")


class _Rows:
    """Implements `statements.Rows`."""

    __slots__ = ("_left", "rowcount")

    def __init__(self, records: Iterable[Any], rowcount: int) -> None:
        self._left = map(tuple, records)
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return next(self._left, None)

    def fetchall(self) -> list[Any]:
        return list(self._left)

    def __iter__(self) -> Iterator[Any]:
        return self._left


class Connection:
    """
    Implements `statements.Statements`. `is_lost` says that it cannot be used any more.

    Not to be used by two threads at once: `PostgresDatabase` has the lock.
    """

    def __init__(
        self,
        address: Address,
        *,
        schema: str,
        read_only: bool = False,
        who: str = "fleetform",
        wait_seconds: float | None = None,
    ) -> None:
        """`wait_seconds` is how long anything may take, for who would rather not wait."""
        self._loop = asyncio.new_event_loop()
        self._prepared: dict[str, Any] = {}
        self.total_changes = 0
        self._driver: Any = None
        until = time.monotonic() + (wait_seconds or STARTING_SECONDS)
        try:
            while self._driver is None:
                try:
                    self._driver = self._run(
                        _connect(address, schema, wait_seconds, read_only=read_only, who=who)
                    )
                except STARTING:
                    if time.monotonic() > until:
                        raise
                    time.sleep(_PAUSE_SECONDS)
        except BaseException:
            self._loop.close()
            raise

    # -- statements ---------------------------------------------------------------------------

    def execute(self, statement: str, values: Sequence[Any] = ()) -> _Rows:
        records, status = self._run(self._execute(to_postgres(statement), values))
        count = _COUNT.match(status)
        changed = int(count[1]) if count else -1
        if changed > 0:
            self.total_changes += changed
        return _Rows(records, changed)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """All rows go out before the first answer is waited for; see `statements.Statements`."""
        cleaned = [_clean(row) for row in rows]
        if cleaned:
            self._run(self._driver.executemany(to_postgres(statement), cleaned))
            # How many each of them changed is not told.
            self.total_changes += len(cleaned)

    def script(self, text: str) -> str:
        """Carry out statements without values, as they are; returns what the last one did."""
        return str(self._run(self._driver.execute(text)))

    async def _execute(self, statement: str, values: Sequence[Any]) -> tuple[Any, str]:
        prepared = self._prepared.get(statement)
        if prepared is None:
            if len(self._prepared) >= _KEPT_STATEMENTS:
                self._prepared.clear()
            prepared = self._prepared[statement] = await self._driver.prepare(statement)
        records = await prepared.fetch(*_clean(values))
        return records, prepared.get_statusmsg()

    # -- state --------------------------------------------------------------------------------

    @property
    def is_lost(self) -> bool:
        return bool(self._driver.is_closed())

    @property
    def in_transaction(self) -> bool:
        return not self.is_lost and bool(self._driver.is_in_transaction())

    def drop(self) -> None:
        """Close it at once; the server rolls back what is under way."""
        if not self._loop.is_closed():
            self._driver.terminate()
            self._run(asyncio.sleep(0))
            self._loop.close()

    def close(self) -> None:
        """Take leave of the server; of one that does not answer without waiting long."""
        if self._loop.is_closed():
            return
        try:
            if not self.is_lost:
                self._run(self._driver.close(timeout=2))
        except BaseException as error:
            if not is_lost(error):
                raise
        finally:
            self.drop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._loop.run_until_complete(work)
        # Rare: what a command does before its manager runs. It waits, as it would for a file.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._loop.run_until_complete, work).result()


async def _connect(
    address: Address, schema: str, wait_seconds: float | None, *, read_only: bool, who: str
) -> Any:
    lock_seconds = wait_seconds or LOCK_SECONDS
    statement_seconds = wait_seconds or STATEMENT_SECONDS
    driver = await asyncpg.connect(
        address.url,
        timeout=wait_seconds or CONNECT_SECONDS,
        # Beyond the server's own limit: only for a server that has gone without a word.
        command_timeout=statement_seconds * 1.1,
        statement_cache_size=_KEPT_STATEMENTS,
    )
    try:
        # Not as parameters of the start, which a pooler in between may refuse.
        await driver.execute(
            f"SET search_path = {schema};"
            f" SET application_name = '{who}';"
            f" SET idle_in_transaction_session_timeout = {int(IDLE_SECONDS * 1000)};"
            f" SET lock_timeout = {int(lock_seconds * 1000)};"
            f" SET statement_timeout = {int(statement_seconds * 1000)};"
            f" SET default_transaction_read_only = {'on' if read_only else 'off'};"
            # A server that waits for its standbys may go on doing so.
            " SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    except BaseException:
        driver.terminate()
        raise
    return driver


def _clean(values: Sequence[Any]) -> Sequence[Any]:
    """PostgreSQL's text holds no NUL; SQLite's does, and a host may say anything."""
    for value in values:
        if type(value) is str and "\0" in value:
            return [one.replace("\0", "�") if isinstance(one, str) else one for one in values]
    return values


# The ledger's statements in PostgreSQL's words.
# All rooms write the SQL that both databases understand, in SQLite's spelling where they differ:
# how a value is marked, a hint, the elements of a JSON list, and the larger of two. The
# translation looks at text only, once a statement; `tests/contract/ledger` runs what comes out.

# Text in quotes is matched first and stays what it is.
_WORDS = re.compile(
    r"(?P<quoted>'(?:[^']|'')*')"
    # PostgreSQL takes no hints: its planner knows the partial indexes.
    r"|(?P<hint>\sINDEXED BY \w+)"
    r"|\bjson_each\(\?(?P<list>\d*)\)"
    # With one argument it is the aggregate, which both have.
    r"|\b(?P<choice>max|min)(?=\([^()]*(?:\([^()]*\)[^()]*)*,)"
    r"|\?(?P<value>\d*)"
)

_CHOICES = {"max": "greatest", "min": "least"}


@lru_cache(maxsize=1024)
def to_postgres(statement: str) -> str:
    """
    Translate one statement.

    `?` becomes `$1`, `$2`, … in order, and `?2` becomes `$2`. A value that a statement uses
    twice is given once.
    """
    count = 0

    def number(given: str) -> str:
        nonlocal count
        if given:
            return f"${given}"
        count += 1
        return f"${count}"

    def word(match: re.Match[str]) -> str:
        if match["quoted"] is not None:
            return match["quoted"]
        if match["hint"] is not None:
            return ""
        if match["list"] is not None:
            return f"json_array_elements_text({number(match['list'])}::json) AS json_each(value)"
        if match["choice"] is not None:
            return _CHOICES[match["choice"]]
        return number(match["value"])

    return _WORDS.sub(word, statement)

"""
What an environment keeps of its stacks, in tables of its schema.

Records are written as the ledger is: by the controller that has the manager lease, under its fence. The Pulumi CLI writes the state of stacks
into a table of its own, and each of its connections says under which fence. A trigger refuses the writes of every earlier fence, so a
CLI that was paused on another machine can change nothing when it continues. The engine writes an operation down before it calls
the cloud, so such a CLI creates nothing either.

These tables are no part of the ledger, and a restored backup leaves them as they are: they say what was created, whichever ledger is
in force.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from fleetform.model.refusals import FenceLost
from fleetform.providers.contract.stacks import OF_ENVIRONMENT, StackBackend
from fleetform.store.errors import MissingLedgerError
from fleetform.store.postgres.address import schema_of
from fleetform.store.postgres.opening import connect, require_current
from fleetform.store.statements import LEASE

if TYPE_CHECKING:
    from fleetform.store.postgres.address import Address
    from fleetform.store.postgres.database import PostgresDatabase

__all__ = ["PostgresStacks", "engine_address"]

_FENCE = "fleetform.fence"
"""The setting by which a connection of the CLI says its fence."""

# The second table is as the CLI creates it, which takes one that exists (pulumi v3.250.0,
# pkg/backend/diy/postgres/schema.sql). The function holds the row of the lease as a transaction of the ledger
# does: a takeover waits until this write is done.
_TABLES = f"""
    CREATE TABLE IF NOT EXISTS stack_records (
        stack TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (stack, kind));

    CREATE TABLE IF NOT EXISTS pulumi_state (
        key TEXT PRIMARY KEY,
        data JSON NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now());

    CREATE INDEX IF NOT EXISTS pulumi_state_key_prefix_idx ON pulumi_state (key text_pattern_ops);

    CREATE OR REPLACE FUNCTION require_fence() RETURNS trigger LANGUAGE plpgsql
    SET search_path FROM CURRENT AS $$ DECLARE
        said TEXT := current_setting('{_FENCE}', true);
    BEGIN
        PERFORM 1 FROM leases
            WHERE name = '{LEASE}' AND CAST(fence AS TEXT) = said FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'fence % is outdated: another controller has taken over', said;
        END IF;
        RETURN NULL;
    END $$;

    DROP TRIGGER IF EXISTS require_fence ON pulumi_state;

    CREATE TRIGGER require_fence BEFORE INSERT OR UPDATE OR DELETE ON pulumi_state
        FOR EACH STATEMENT EXECUTE FUNCTION require_fence();
"""


class PostgresStacks:
    """
    Implements `providers.contract.stacks.StackRecords`; it connects when it is first asked.

    Until `act_under` it only reads.
    """

    def __init__(self, address: Address, environment_uid: str) -> None:
        self._fence = 0
        self._address = address
        self._environment_uid = environment_uid
        self._database: PostgresDatabase | None = None
        self._has_tables = False

    def read(self, stack: str, kind: str) -> str | None:
        found = self._select("stack = ? AND kind = ?", stack, kind)
        return found.get(stack)

    def read_all(self, kind: str) -> Mapping[str, str]:
        return self._select("kind = ?", kind)

    def write(self, stack: str, kind: str, text: str) -> None:
        self._change(
            "INSERT INTO stack_records (stack, kind, content) VALUES (?, ?, ?)"
            " ON CONFLICT (stack, kind) DO UPDATE SET content = excluded.content",
            stack,
            kind,
            text,
        )

    def remove(self, stack: str) -> None:
        self._change("DELETE FROM stack_records WHERE stack = ?", stack)

    def act_under(self, fence: int) -> None:
        self._fence = fence

    def backend(self) -> StackBackend:
        self._require_fence()
        if not self._exists():
            # A transaction that writes no row is rolled back, and its tables with it.
            self.write(OF_ENVIRONMENT, "tables", "1")
        return engine_address(self._address.url, schema_of(self._environment_uid), self._fence)

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        if self._database is not None:
            self._database.close()
            atexit.unregister(self.close)
            self._database = None

    def _select(self, condition: str, *values: str) -> dict[str, str]:
        try:
            if not self._exists():
                return {}
        except MissingLedgerError:
            # Nothing was ever applied.
            return {}
        rows = self._connected().alone(
            f"SELECT stack, content FROM stack_records WHERE {condition}"  # noqa: S608 -- each caller below writes its condition
            ' ORDER BY stack COLLATE "C"',
            values,
        )
        return {str(stack): str(content) for stack, content in rows}

    def _change(self, statement: str, *values: str) -> None:
        self._require_fence()
        has_tables = self._exists()
        with self._connected().write(fence=self._fence) as transaction:
            for create in () if has_tables else _TABLES.split(";\n\n"):
                transaction.execute(create)
            transaction.execute(statement, values)

    def _require_fence(self) -> None:
        if not self._fence:
            raise FenceLost("only the controller of the environment changes its stacks")

    def _exists(self) -> bool:
        if not self._has_tables:
            # The last of what is created: without the trigger, no state is safe.
            found = self._connected().alone(
                "SELECT 1 FROM pg_catalog.pg_trigger"
                " WHERE tgname = 'require_fence' AND tgrelid = to_regclass('pulumi_state')"
            )
            self._has_tables = found.fetchone() is not None
        return self._has_tables

    def _connected(self) -> PostgresDatabase:
        if self._database is None:
            self._database = connect(self._address, self._environment_uid, require_current)
            atexit.register(self.close)
        return self._database


def engine_address(url: str, schema: str, fence: int) -> StackBackend:
    """
    Return the address of the table of states for the Pulumi CLI.

    The password is a variable of its own: the CLI prints its address. The name of the database is a parameter, because the CLI
    takes a path in the address for a part of the names of its rows. Its driver requires TLS by default, and the driver of the ledger
    prefers it.
    """
    parts = urlsplit(url)
    # As written: a host that is the folder of a socket has upper case letters.
    who, _, place = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    hosts = [one.rpartition(":") if _has_port(one) else (one, "", "") for one in place.split(",")]
    given = {
        "user": unquote(user),
        "dbname": unquote(parts.path.removeprefix("/")),
        "host": ",".join(unquote(host).strip("[]") for host, _, _ in hosts),
        "port": ",".join(port for _, _, port in hosts if port),
        **({} if os.environ.get("PGSSLMODE") else {"sslmode": "prefer"}),
        **dict(parse_qsl(parts.query)),
    }
    password = given.pop("password", "") or unquote(password)
    settings = {"search_path": schema, _FENCE: str(fence)}
    query = urlencode({name: value for name, value in given.items() if value} | settings)
    variables = {"PGPASSWORD": password} if password else {}
    return StackBackend(f"postgres:///?{query}", variables, breaks_locks=True)


def _has_port(host: str) -> bool:
    return ":" in host and not host.endswith("]")

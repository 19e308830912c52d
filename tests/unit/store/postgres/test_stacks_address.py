"""The address of a database as the Pulumi CLI reads it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from fleetform.store.postgres.stacks import engine_address


@pytest.fixture(autouse=True)
def without_variables(monkeypatch):
    monkeypatch.delenv("PGSSLMODE", raising=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u@h:5/db", {"user": "u", "host": "h", "port": "5", "dbname": "db"}),
        ("postgres://u%40x@h/d%20b", {"user": "u@x", "host": "h", "dbname": "d b"}),
        ("postgresql://u@a,b/db", {"user": "u", "host": "a,b", "dbname": "db"}),
        ("postgresql://u@a:1,b:2/db", {"user": "u", "host": "a,b", "port": "1,2", "dbname": "db"}),
        ("postgresql://[2001:db8::1]:5/db", {"host": "2001:db8::1", "port": "5", "dbname": "db"}),
        ("postgresql://[2001:db8::1]/db", {"host": "2001:db8::1", "dbname": "db"}),
        ("postgresql://%2FRun%2Fpg/db", {"host": "/Run/pg", "dbname": "db"}),
        ("postgresql:///db?host=/Run/pg&port=6", {"host": "/Run/pg", "port": "6", "dbname": "db"}),
        ("postgresql://", {}),
    ],
)
def test_the_address_says_the_same(url, expected):
    """User, hosts and database are parameters, because a path would be a part of the names of rows."""
    parts = urlsplit(engine_address(url, "fleetform_e", 7).url)
    assert (parts.scheme, parts.netloc, parts.path) == ("postgres", "", "/")
    said = {name: values[0] for name, values in parse_qs(parts.query).items()}
    fenced = {"search_path": "fleetform_e", "fleetform.fence": "7", "sslmode": "prefer"}
    assert said == {**expected, **fenced}


@pytest.mark.parametrize(
    "url", ["postgresql://u:p%3Aw@h/db", "postgresql://u@h/db?password=p%3Aw&application_name=x"]
)
def test_the_password_is_a_variable(url):
    """Wherever the address has it."""
    backend = engine_address(url, "fleetform_e", 7)
    assert backend.variables == {"PGPASSWORD": "p:w"}
    assert "p%3Aw" not in backend.url
    assert engine_address("postgresql://u@h/db", "s", 7).variables == {}


def test_tls_is_as_declared(monkeypatch):
    """In the address or by the variable; else the CLI would require it where the ledger does not."""
    assert "sslmode=verify-full" in engine_address("postgres://h/?sslmode=verify-full", "s", 1).url
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert "sslmode" not in engine_address("postgres://h/", "s", 1).url


def test_an_earlier_controller_cannot_write():
    """So a lock that it left in the state may be deleted."""
    assert engine_address("postgres://h/", "s", 1).breaks_locks

"""Where the ledger is, as the process's environment says it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fleetform.app.paths import ledger_backend
from fleetform.app.problems import LedgerProblem
from fleetform.store.postgres.backend import PostgresBackend
from fleetform.store.sqlite import SqliteBackend

SECRET = "pass-word"
HOME = Path("/state")
URL = f"postgresql://anna:{SECRET}@db/ledger"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLEETFORM_LEDGER", raising=False)
    monkeypatch.delenv("FLEETFORM_LEDGER_FILE", raising=False)


def refused() -> LedgerProblem:
    with pytest.raises(LedgerProblem) as caught:
        ledger_backend(HOME)
    assert SECRET not in f"{caught.value.message}{caught.value.advice}{caught.value!r}"
    return caught.value


def url() -> str:
    """The address that was chosen."""
    backend = ledger_backend(HOME)
    assert isinstance(backend, PostgresBackend)
    return backend.address.url


def test_without_an_address_it_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing set, or set to nothing, means SQLite."""
    assert isinstance(ledger_backend(HOME), SqliteBackend)
    monkeypatch.setenv("FLEETFORM_LEDGER", "")
    assert isinstance(ledger_backend(HOME), SqliteBackend)


def test_from_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable's address is taken as it is."""
    monkeypatch.setenv("FLEETFORM_LEDGER", URL)
    assert url() == URL


def test_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that only its owner reads holds it; one that others read is refused with the cure."""
    file = tmp_path / "address"
    file.write_text(f"{URL}\n")
    monkeypatch.setenv("FLEETFORM_LEDGER_FILE", str(file))
    file.chmod(0o640)
    assert refused().advice == f"run `chmod 600 {file}`"
    file.chmod(0o600)
    assert url() == URL


def test_what_cannot_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is not there, no file, no text, no address, and two of them: each says so."""
    monkeypatch.setenv("FLEETFORM_LEDGER_FILE", str(tmp_path / "none"))
    assert "No such file" in refused().message
    monkeypatch.setenv("FLEETFORM_LEDGER_FILE", str(tmp_path))
    assert str(tmp_path) in refused().message
    file = tmp_path / "address"
    file.write_bytes(b"\xff\xfe")
    file.chmod(0o600)
    monkeypatch.setenv("FLEETFORM_LEDGER_FILE", str(file))
    assert "it is not text" in refused().message
    file.write_text(f"mysql://anna:{SECRET}@db/x")
    assert "does not begin with postgresql://" in refused().message
    monkeypatch.setenv("FLEETFORM_LEDGER", URL)
    assert refused().advice == "unset one of them"


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the cure is its name."""
    monkeypatch.setenv("FLEETFORM_LEDGER", URL)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    for name in [name for name in sys.modules if name.startswith("fleetform.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    said = refused()
    assert "needs the package asyncpg" in said.message
    assert "'.[postgresql]'" in said.advice

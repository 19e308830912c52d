"""What the documents show is the same where the ledger is in a database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leftovers import end_agents, end_manager
from postgres_server import PostgresServer
from scenario import transcript

SCENARIOS = Path(__file__).parents[2] / "scenario"

# Those that neither open the ledger's file nor wait for a lease to end, and are about what is
# kept in it: notes of what was right, overrides, plans and who made them, names that moved.
# Each has a uid of its own, and so a schema.
NAMES = ("drift", "emergency", "history", "moved", "saved-plan")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state home; whatever a document has left running ends with the test."""
    home = tmp_path / "state"
    yield home
    end_manager(home)
    end_agents(home)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_shows_what_happens_on_postgresql(
    name: str,
    tmp_path: Path,
    state: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each command prints what the document says, to the letter."""
    monkeypatch.setenv("FLEETFORM_LEDGER", postgres.url)
    folder = tmp_path / "work"
    folder.mkdir()
    assert transcript.run(SCENARIOS / f"{name}.md", folder, state) > 0
    assert not list(state.glob("environments/*/ledger.db"))

"""The ledger's statements in PostgreSQL's words: what is translated, and what is left alone."""

from __future__ import annotations

import pytest

from fleetform.store.postgres.connection import to_postgres


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"),
        ("SELECT ?2, ?1, ?2", "SELECT $2, $1, $2"),
        ("SELECT 'why?' WHERE a = ?", "SELECT 'why?' WHERE a = $1"),
        ("SELECT 'it''s max(a, b)?', ?", "SELECT 'it''s max(a, b)?', $1"),
        ("SELECT a FROM t INDEXED BY t_a WHERE a = ?", "SELECT a FROM t WHERE a = $1"),
        ("SELECT a FROM t x INDEXED BY t_a JOIN u", "SELECT a FROM t x JOIN u"),
        ("UPDATE t SET a = max(a, ?)", "UPDATE t SET a = greatest(a, $1)"),
        ("SELECT sum(b * max(c - d, 0))", "SELECT sum(b * greatest(c - d, 0))"),
        ("SELECT min(coalesce(a, 0), b)", "SELECT least(coalesce(a, 0), b)"),
        ("SELECT coalesce(max(a), 0), min(b)", "SELECT coalesce(max(a), 0), min(b)"),
        (
            "SELECT value FROM json_each(?1) WHERE value > ?2",
            "SELECT value FROM json_array_elements_text($1::json) AS json_each(value) WHERE value > $2",
        ),
    ],
)
def test_translation(ours: str, theirs: str) -> None:
    """Values, hints, lists and the larger of two change; text in quotes and aggregates do not."""
    assert to_postgres(ours) == theirs


def test_nothing_is_left_of_the_other_dialect() -> None:
    """A statement that needs none of it comes out as it went in."""
    statement = "UPDATE meta SET serial = serial + 1 RETURNING serial"
    assert to_postgres(statement) == statement

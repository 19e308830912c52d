"""Columns line up, and a row is one line."""

from __future__ import annotations

from fleetform.views.table import Cell, Column, aligned, make_table, plain_lines

COLUMNS: tuple[Column[tuple[str, int, str]], ...] = (
    Column("NAME", lambda row: row[0]),
    Column("N", lambda row: str(row[1]), right=True),
    Column("NOTE", lambda row: Cell(row[2], "bad"), optional=True),
)


def test_columns_are_aligned():
    """Text at its beginning, numbers at their end, two spaces between."""
    table = make_table(COLUMNS, [("a", 5, "x"), ("long", 12, "")])
    assert plain_lines(table) == ("NAME   N  NOTE", "a      5  x", "long  12  -")


def test_an_optional_column_without_text_is_left_out():
    """Nobody reads a column of dashes."""
    table = make_table(COLUMNS, [("a", 5, "")])
    assert plain_lines(table) == ("NAME  N", "a     5")


def test_a_table_without_rows_has_its_titles():
    """What would be there is said."""
    assert plain_lines(make_table(COLUMNS, [])) == ("NAME  N",)


def test_the_last_column_is_cut_at_the_width():
    """And nothing is cut in a pipe."""
    table = make_table(COLUMNS, [("a", 5, "a long message")])
    assert plain_lines(table, width=20)[1] == "a     5  a long mes…"
    assert plain_lines(table)[1].endswith("a long message")


def test_a_cell_stays_on_one_line():
    """Whatever a program wrote into its message."""
    table = make_table(COLUMNS, [("a", 5, "one\ntwo\x0b  three")])
    assert plain_lines(table)[1] == "a     5  one two three"


def test_tones_survive_the_padding():
    """Who prints colours cells, not lines."""
    line = aligned(make_table(COLUMNS, [("a", 5, "x")]))[1]
    assert [cell.tone for cell in line] == ["plain", "plain", "bad"]

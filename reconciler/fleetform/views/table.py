"""
Tables as values: cells in aligned columns, with a tone each and no terminal.

Who prints decides about colour and width. A table of any noun has one line of titles and one
line a row, so that `grep` and `awk` work on what people read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fleetform.views.lines import printable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row")
Made = TypeVar("Made", bound="DataclassInstance")

GAP = "  "
EMPTY = "-"
"""Stands for a cell without text, so that columns can be counted."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Text on one line. Tones: `plain`, `dim`, `good`, `bad`, `warn`, `info`, `bold`."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """
    How one column is made of a row.

    `right`: numbers, aligned at their end. `optional`: left out where no row has a text.
    """

    title: str
    cell: Callable[[Row], Cell | str]
    right: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Titles and rows of cells; all rows are as long as `titles`. `right` numbers columns."""

    titles: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: frozenset[int] = frozenset()


def row_of(made: type[Made], /, *sources: object, **values: Any) -> Made:
    """
    Make a row of `values` and, for its other fields, of the sources' attributes of the same names.

    The first source that has the attribute counts. Of an enum the row has the value.
    """
    for field in fields(made):
        if field.name not in values:
            for source in sources:
                if hasattr(source, field.name):
                    found = getattr(source, field.name)
                    values[field.name] = found.value if isinstance(found, Enum) else found
                    break
    return made(**values)


def make_table(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Table:
    cells = [tuple(_cell(column.cell(row)) for column in columns) for row in rows]
    kept = [
        index
        for index, column in enumerate(columns)
        if not column.optional or any(row[index].text for row in cells)
    ]
    return Table(
        titles=tuple(columns[index].title for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in cells),
        right=frozenset(place for place, index in enumerate(kept) if columns[index].right),
    )


def aligned(table: Table, *, width: int = 0) -> tuple[tuple[Cell, ...], ...]:
    """
    Pad the cells, titles first, so that joining a line's texts prints it.

    `width` cuts the last column where a line would be longer; 0 cuts nothing, as in a pipe.
    """
    titles = tuple(Cell(title, "dim") for title in table.titles)
    lines = [titles, *(tuple(_filled(cell) for cell in row) for row in table.rows)]
    widths = [max(len(line[i].text) for line in lines) for i in range(len(titles))]
    return tuple(_padded(line, widths, table.right, width) for line in lines)


def plain_lines(table: Table, *, width: int = 0) -> tuple[str, ...]:
    """Return the lines without tones."""
    return tuple(
        "".join(cell.text for cell in line).rstrip() for line in aligned(table, width=width)
    )


def cut_cells(line: Iterable[Cell], width: int) -> tuple[Cell, ...]:
    """Cut a line of padded cells after `width` columns, wherever that is."""
    cut: list[Cell] = []
    for cell in line:
        cut.append(Cell(cell.text[: max(0, width)], cell.tone))
        width -= len(cell.text)
    return tuple(cut)


def _padded(
    line: tuple[Cell, ...], widths: Sequence[int], right: frozenset[int], width: int
) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    used = 0
    last = len(line) - 1
    for index, cell in enumerate(line):
        if index in right:
            text = cell.text.rjust(widths[index])
        else:
            text = cell.text if index == last else cell.text.ljust(widths[index])
        if index == last and width:
            text = _cut(text, width - used)
        elif index != last:
            text += GAP
        used += len(text)
        cells.append(Cell(text, cell.tone))
    return tuple(cells)


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    # A column of a few letters says nothing: then the line is left to wrap.
    return text if room < 8 else text[: room - 1] + "…"


def _cell(value: Cell | str) -> Cell:
    """Keep a cell on one line of text: a message may contain text of a program or another user."""
    cell = Cell(value) if isinstance(value, str) else value
    text = printable(" ".join(cell.text.split()))
    return cell if text == cell.text else Cell(text, cell.tone)


def _filled(cell: Cell) -> Cell:
    return cell if cell.text else Cell(EMPTY, "dim")

"""
The terminal: whether to colour, how wide it is, and how a toned line is written.

Colour follows https://no-color.org and FORCE_COLOR: NO_COLOR wins, then FORCE_COLOR, then
whether the stream is a terminal. Escape sequences are written here and nowhere else, and what
is printed here is nothing that a CI runner obeys in its log.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from fleetform.views.lines import Line
    from fleetform.views.table import Table

Row = TypeVar("Row")

# Select Graphic Rendition, ECMA-48 section 8.3.117. Only the eight basic colours: they are what
# people have chosen for their terminal, on light and on dark.
_SGR = {
    "plain": "",
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "info": "36",
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "help": "1;36",
}

_BATCH = 500
"""Lines of a view that are written at once; more than a screen has, and few enough to wait for."""


class Screen:
    """
    One stream that people read.

    Attributes:
        colour: Whether tones become escape sequences.
        interactive: Whether it is a terminal, so that lines may be rewritten.
    """

    def __init__(self, stream: TextIO, *, environ: Mapping[str, str] | None = None) -> None:
        self.stream = stream
        self.interactive = stream.isatty()
        self.colour = wants_colour(os.environ if environ is None else environ, self.interactive)

    @property
    def width(self) -> int:
        """Columns of the terminal; 0 where lines are not to be cut, as in a pipe."""
        if not self.interactive:
            return 0
        try:
            return os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            return 80

    def toned(self, text: str, tone: str) -> str:
        """Give `text` a tone; unknown tones are plain, so that views may grow."""
        code = _SGR.get(tone, "") if self.colour and text else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code else text

    def line(self, text: str = "", tone: str = "plain") -> None:
        self.stream.write(f"{self.toned(_harmless(text), tone)}\n")

    def lines(self, lines: Iterable[Line]) -> None:
        """Write lines of a view, each span in its tone."""
        rest = iter(lines)
        # Hundreds in one go: a plan of a hundred thousand changes has a million of them.
        while batch := list(islice(rest, _BATCH)):
            texts = [self._text(one).rstrip() for one in batch] if self.colour else [
                one.text.rstrip() for one in batch
            ]  # fmt: skip
            self.stream.write(_harmless("\n".join([*texts, ""])))

    def exact_lines(self, lines: Iterable[Line]) -> None:
        """The same with blanks at the ends of lines: a difference of files is taken by `patch`."""
        for one in lines:
            self.stream.write(f"{_harmless(self._text(one))}\n")

    def _text(self, one: Line) -> str:
        return "".join([self.toned(span.text, span.tone) for span in one.spans])

    def table(self, table: Table) -> None:
        """Write a table; its last column is cut to the terminal, and in a pipe nothing is."""
        self.stream.writelines(f"{line}\n" for line in self.table_lines(table))

    def table_lines(self, table: Table, *, is_cut: bool = False) -> list[str]:
        """
        Return the lines that `table` writes, without their ends.

        Args:
            table: What to write.
            is_cut: Cut every line to the terminal, also within a column before the last one.
        """
        from fleetform.views.table import aligned, cut_cells

        lines: list[str] = []
        width = self.width
        for padded in aligned(table, width=width):
            cells = cut_cells(padded, width) if is_cut else padded
            # Padding is outside the tone and goes at the line's end: no blanks are left there.
            line = "".join(self.toned(cell.text, cell.tone) for cell in cells[:-1])
            line += self.toned(cells[-1].text, cells[-1].tone)
            lines.append(_harmless(line.rstrip()))
        return lines

    def rows(
        self,
        rows: Sequence[Row],
        table: Callable[[Sequence[Row]], Table],
        *,
        none: str,
        as_json: bool,
    ) -> None:
        """Write rows as JSON or as a table; `none` is what people read where there is no row."""
        if as_json:
            self.json(rows)
        elif rows:
            self.table(table(rows))
        else:
            self.line(none, "dim")

    def json(self, value: Any) -> None:
        """Write a row, or anything made of rows, as JSON for scripts."""
        import json

        from fleetform.views.json_value import to_json

        # In JSON a number sign stands within a text, where its escape is the same sign.
        self.stream.write(
            _harmless(json.dumps(to_json(value), indent=2, ensure_ascii=False)) + "\n"
        )

    def json_line(self, value: Any) -> None:
        """Write it on one line, for output that goes on."""
        import json

        from fleetform.views.json_value import to_json

        self.stream.write(_harmless(json.dumps(to_json(value), ensure_ascii=False)) + "\n")

    def labelled(self, label: str, text: str) -> None:
        """Write `error: …` or `help: …` in the label's tone; what is in the text is only shown."""
        from fleetform.views.lines import printable_lines

        self.line(f"{self.toned(f'{label}:', label)} {printable_lines(text)}")

    def flush(self) -> None:
        self.stream.flush()


def _harmless(text: str) -> str:
    from fleetform.views.lines import harmless

    return harmless(text)


def wants_colour(environ: Mapping[str, str], interactive: bool) -> bool:
    """Decide about colour; an empty variable counts as not set, as no-color.org has it."""
    if environ.get("NO_COLOR"):
        return False
    forced = environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return interactive and environ.get("TERM") != "dumb"


def screen() -> Screen:
    """Standard output: what was asked for."""
    return Screen(sys.stdout)


def say_line(text: str) -> None:
    """Warn on standard error, whatever mode its terminal is in."""
    say = error_screen()
    # A command inside a job has made it raw: there `\n` alone leaves the column as it is.
    start, end = ("\r", "\r\n") if say.interactive else ("", "\n")
    # The terminal may be closed, and the command goes on.
    with contextlib.suppress(OSError, ValueError):
        say.stream.write(f"{start}{say.toned(_harmless(text), 'warn')}{end}")
        say.flush()


def error_screen() -> Screen:
    """Standard error: what went wrong, and prompts."""
    # Where both go into one pipe or file, what was said first stands first. A reader that is gone
    # is met by the command's own next word.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    return Screen(sys.stderr)

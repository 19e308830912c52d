"""A change of a text file, as the lines of a unified diff with tones."""

from __future__ import annotations

import difflib

from fleetform.views.lines import Line, line, printable

__all__ = ["text_diff"]

_TONES = {"+": "good", "-": "bad", "@": "info"}


def text_diff(path: str, before: str | None, after: str | None) -> tuple[Line, ...]:
    """
    Compare two texts of one file.

    Args:
        path: As people would type it; both headers have it.
        before: None: the file is new.
        after: None: the file goes.

    Returns:
        Nothing where both say the same. Line ends are no part of the lines.
    """
    found = difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        path if before is not None else "/dev/null",
        path if after is not None else "/dev/null",
        lineterm="",
    )
    return tuple(_toned(number, text) for number, text in enumerate(found))


def _toned(number: int, text: str) -> Line:
    # The two headers come first, and a line that was removed may begin with two dashes as well.
    tone = "bold" if number < 2 else _TONES.get(text[:1], "plain")
    return line((printable(text.rstrip()) if text.strip() else text, tone))

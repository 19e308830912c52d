"""One line on standard error while a command waits for answers of hosts and clouds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fleetform.cli.screen import error_screen

__all__ = ["status_line"]


@contextlib.contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """
    Show a line until the block ends; in a pipe, print it once.

    Yields:
        A function that replaces the line.
    """
    error = error_screen()
    if not error.interactive:
        error.line(text, "dim")
        yield lambda _text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield status.update

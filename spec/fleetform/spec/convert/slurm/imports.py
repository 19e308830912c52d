"""
What a file of code names of the files around it: modules that it imports, and names of files in quotes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["imported_files", "named_in_code"]

_QUOTED: Final = re.compile(r"""["']([\w./-]{3,200})["']""")


def named_in_code(file: Path, text: str, folder: Path) -> Iterator[Path]:
    """
    Yield files and packages that `file` uses and that exist.

    Args:
        file: A program or a module.
        text: Its content.
        folder: The directory that it runs in: names in quotes are relative to it, or to the file.
    """
    for quoted in _QUOTED.findall(text):
        for path in (folder / quoted, file.parent / quoted):
            if not quoted.startswith("/") and path.is_file():
                yield path
    if file.suffix == ".py":
        yield from imported_files(text, (file.parent, folder))


def imported_files(text: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the modules and packages in `folders` that the Python code `text` imports."""
    for name in _imported(text):
        parts = name.split(".")
        for root in folders:
            module, package = root.joinpath(*parts).with_suffix(".py"), root / parts[0]
            if package.is_dir() and any(package.glob("*.py")):
                yield package
            elif module.is_file():
                yield module


def _imported(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            elif node.level:
                yield from (one.name for one in node.names)

"""Names for what had none, or had one that cannot be a name here."""

from __future__ import annotations

import re

from fleetform.spec.names import NAME_LENGTH_MAX, name_problem

__all__ = ["Names", "derive_name"]


def derive_name(text: str, *, otherwise: str = "run") -> str:
    """
    Return a name that is as near to `text` as a name can be.

    Args:
        text: A file's name without its endings, or what it was called elsewhere.
        otherwise: What is put before what would begin with a digit, and stands for what has no
            letter at all.
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not words[:1].isalpha():
        words = f"{otherwise}-{words}".strip("-")
    name = words[:NAME_LENGTH_MAX].rstrip("-")
    return name if name_problem(name) is None else f"{otherwise}-{name}"[:NAME_LENGTH_MAX]


class Names:
    """The names that are taken, by kind: dstack tells runs apart by file, and a tree does not."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str]] = set()

    def take(self, kind: str, name: str) -> str:
        """Return the name, or if it is taken the first of `name-2`, `name-3` … that is not."""
        chosen, number = name, 2
        while (kind, chosen) in self._taken:
            ending = f"-{number}"
            chosen = f"{name[: NAME_LENGTH_MAX - len(ending)]}{ending}"
            number += 1
        self._taken.add((kind, chosen))
        return chosen

    def has(self, kind: str, name: str) -> bool:
        return (kind, name) in self._taken

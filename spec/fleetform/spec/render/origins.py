"""
Where a value was written, in the words of a comment: `../base/train.yaml:7`, `environment.yaml:12 patch`.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass

from fleetform.spec.nodes import ForeignSpan, Span

__all__ = ["Origins", "Teller"]


class Origins(enum.StrEnum):
    """Which values say where they are from."""

    NONE = "none"
    INHERITED = "inherited"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Teller:
    """
    Says it for the values of one document.

    Attributes:
        file: The document's own.
        is_base: The document is a base's, so that its own text is inherited too.
        patch_files: Files in which patches are written.
    """

    wanted: Origins
    file: str
    is_base: bool
    patch_files: Collection[str]

    def origin(self, place: Span, *, values: Collection[str] = ()) -> str:
        """
        Where the value at `place` is from; empty where nobody wants to know.

        `values` are names of the environment's values that stand in it.
        """
        if self.wanted is Origins.NONE:
            return ""
        named = [f"values.{name}" for name in values]
        if isinstance(place, ForeignSpan):
            return ", ".join([f"{place.file}:{place.line} {self._way(place.file)}", *named])
        if self.is_base or self.wanted is Origins.ALL:
            return ", ".join([f"{self.file}:{place.line}", *named])
        return ", ".join(named)

    def _way(self, file: str) -> str:
        return "patch" if file in self.patch_files else "profile"

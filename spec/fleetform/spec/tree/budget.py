"""
What a whole configuration may ask of its reader, counted down as its documents are read.

`bounds.Limits` bounds a file by what is written in it. An array of a hundred thousand, or a
text that repeats another ten thousand times, is written in a line: these are bounded by what
they come to, before any of it is made. One budget serves all documents of a tree, because a
file has room for a hundred thousand such lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleetform.spec.bounds import ELEMENTS_MAX
from fleetform.spec.findings import Problem

__all__ = ["FINDINGS_MAX", "PROBLEMS_MAX", "Budget"]

PROBLEMS_MAX = 100
"""Problems of one sort that are reported of one document; each costs a search for what was meant."""

FINDINGS_MAX = 200
"""Findings of one level that are reported of one file. The rest of them is a number."""


@dataclass(slots=True)
class Budget:
    """
    What is left of each bound.

    Attributes:
        elements: Elements of arrays and sweeps. Twice what one document may make: each takes
            about a kilobyte until the plan is made.
        written: Characters that filled-in texts come to. A hundred thousand elements of a
            kilobyte each, and the most that is kept in memory.
        digested: Characters of all elements together, what they share counted for each. It is
            hashed at about a gigabyte a second, and not kept.
    """

    elements: int = 2 * ELEMENTS_MAX
    written: int = 2**27
    digested: int = 2**32

    def left(self) -> tuple[int, int, int]:
        """What is left of elements, written and digested."""
        return self.elements, self.written, self.digested

    def repeat(self, spent: tuple[int, int, int]) -> bool:
        """Take what the same document took before; False where it would not get it."""
        after = [one - two for one, two in zip(self.left(), spent, strict=True)]
        # With no elements left, even a document that makes none is told so.
        if not self.elements or min(after) < 0:
            return False
        self.elements, self.written, self.digested = after
        return True

    def take_elements(self, count: int, field: str) -> Problem | None:
        """
        Take room for the elements that `field` makes, or say why there is none.

        From then on there is none at all: the next documents need not even be read to know it.
        """
        if count <= self.elements:
            self.elements -= count
            return None
        self.elements = 0
        return Problem(
            "too-many-elements",
            (field,),
            f"With these there are more than {2 * ELEMENTS_MAX} elements in the configuration.",
            "Let each element do more, or give some of the documents an environment of their own.",
            at_key=True,
        )

    def take_text(self, written: int, digested: int) -> Problem | None:
        """Take room for the texts of an element or of all, or say why there is none."""
        if written <= self.written and digested <= self.digested:
            self.written -= written
            self.digested -= digested
            return None
        return Problem(
            "too-much-text",
            (),
            "With all expressions filled in, its elements exceed the size limit of a configuration.",
            "Put the long part into a file, name it under `files:`, and let the command read it.",
        )

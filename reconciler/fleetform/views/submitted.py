"""A submission as scripts read it: what was frozen, what ran, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.views.runs import RunRow

__all__ = ["SubmittedRow"]


@dataclass(frozen=True, slots=True)
class SubmittedRow:
    """
    One submission.

    Attributes:
        name: Of the run, or of the sweep that it is.
        outcome: `done` where all its runs have succeeded, `failed` where one has not, `submitted`
            where nobody waited for them, `interrupted` where somebody stopped waiting.
        exit_code: What the command ends with, as in the table of exit codes.
        document: Where it lies in the tree.
        code_files: How many files of the working copy were frozen.
        commit: Of the working copy, with `+dirty` where it had changes; empty outside git.
        runs: One row each, as in `ps --format json`: `attempt`, `state`, `exit_code`, `message`.
    """

    name: str
    outcome: str
    exit_code: int
    document: str
    code_files: int
    commit: str
    runs: tuple[RunRow, ...]

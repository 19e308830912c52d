"""
What is wrong with a tree, as it is found: by file, no more of each than somebody reads, and sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fleetform.spec.findings import Finding, Level
from fleetform.spec.tree.budget import FINDINGS_MAX
from fleetform.spec.tree.walk import finding

__all__ = ["Told", "quoted"]


class Told:
    """Findings of one load."""

    def __init__(self) -> None:
        self._findings: dict[str, list[Finding]] = {}
        self._untold: Counter[tuple[str, Level]] = Counter()
        self._counts: Counter[tuple[str, Level]] = Counter()

    def tell(self, told: Finding) -> None:
        self._findings.setdefault(told.place.file, []).append(told)

    def drop(self, file: str) -> None:
        """The file is nothing that the tree declares."""
        self._findings.pop(file, None)

    def has_room(self, file: str, level: Level) -> bool:
        """Whether one more is told of the file; finding its place takes the most time."""
        if self._counts[file, level] < FINDINGS_MAX:
            self._counts[file, level] += 1
            return True
        self._untold[file, level] += 1
        return False

    def tell_untold(self) -> None:
        """How many were not, once all have been found."""
        for (file, level), count in self._untold.items():
            self.tell(
                finding(
                    "too-many-findings",
                    file,
                    f"Of this level there are {count} more in the file.",
                    "Correct the ones that are shown first; they may be the cause of the others.",
                    level,
                )
            )

    def sorted(self, data: Mapping[str, bytes]) -> tuple[Finding, ...]:
        """All of them by place, with their lines where `data` has the file's bytes."""
        told: list[Finding] = []
        for file, findings in self._findings.items():
            told.extend(quoted(data, file, findings))
        return tuple(sorted(told, key=lambda one: one.sort_key))


def quoted(data: Mapping[str, bytes], file: str, findings: Iterable[Finding]) -> Iterable[Finding]:
    """Findings of a file, with the lines that they are about where its bytes are at hand."""
    if file not in data:
        return findings
    from fleetform.spec.documents import quote_lines

    return quote_lines(findings, data[file])

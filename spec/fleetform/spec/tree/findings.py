"""
Collect the findings of a load: with line and column, by file, sorted, and not more than `FINDINGS_MAX`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from fleetform.spec.findings import SUMMARIES, Finding, Level, Place, Problem
from fleetform.spec.nodes import (
    ForeignSpan,
    MappingNode,
    Node,
    ScalarNode,
    Span,
    child,
    lookup,
    scalars,
)
from fleetform.spec.tree.budget import FINDINGS_MAX
from fleetform.spec.tree.walk import finding

__all__ = ["FindingLog", "address_of", "place", "quoted"]


# A screen full; findings have a sentence or three.
_LENGTH_MAX = 2000

_REWRITTEN = "number-rewritten"


def place(problem: Problem, node: Node, file: str, address: str) -> Finding:
    """
    The finding for a problem of the document that `node` is.

    `address` is how people name the document: `task.train`.
    """
    return Finding(
        problem.level,
        problem.code,
        SUMMARIES[problem.code],
        _place(problem, node, file),
        _shortened(problem.detail),
        _shortened(problem.advice),
        _shortened(".".join([address, *(str(step) for step in problem.path)])),
    )


def _shortened(text: str) -> str:
    # A name of a megabyte is one word to whoever quotes it.
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"


def _place(problem: Problem, node: Node, file: str) -> Place:
    if problem.word:
        below = node
        for step in problem.path:
            following = child(below, step)
            below = following[1] if following else below
        found = _find_word(below, problem.word) or _find_part(below, problem.word)
        if found is not None:
            return found.in_file(file)
    return lookup(node, problem.path, file=file, of="key" if problem.at_key else "value")


def _find_part(node: Node, word: str) -> Span | None:
    """The expression in the first text that has it as it is meant, on one line."""
    return next((part for _, one in scalars(node) if (part := _part_of(one, word))), None)


def _part_of(node: ScalarNode, word: str) -> Span | None:
    quotes = 1 if node.style in {"'", '"'} and node.style else 0
    match = re.search(r"\$\{\{\s*" + re.escape(word) + r"\s*\}\}", node.raw)
    if match is None or node.place.length != len(node.raw) + 2 * quotes:
        return None
    line, column, _ = node.place
    part = Span(line, column + quotes + match.start(), match.end() - match.start())
    return ForeignSpan.of(part, node.place.file) if isinstance(node.place, ForeignSpan) else part


def _find_word(node: Node, word: str) -> Span | None:
    """The first scalar that is the word, or begins with it and a colon: `data:/mnt`."""
    raws = ((one.raw, one.place) for _, one in scalars(node))
    return next((at for raw, at in raws if raw == word or raw.startswith(f"{word}:")), None)


def address_of(node: Node) -> str:
    """How people name a document, as far as it says so itself."""
    if not isinstance(node, MappingNode):
        return ""
    parts = [node.get("type"), node.get("name")]
    return ".".join(
        part.raw for part in parts if isinstance(part, ScalarNode) and 0 < len(part.raw) <= 60
    )


class FindingLog:
    """Findings of one load."""

    def __init__(self) -> None:
        self._findings: dict[str, list[Finding]] = {}
        self._omitted: Counter[tuple[str, Level]] = Counter()
        self._counts: Counter[tuple[str, Level]] = Counter()

    def add(self, found: Finding) -> None:
        findings = self._findings.setdefault(found.place.file, [])
        # A variable of a profile is read with each run that has the profile.
        if found.code != _REWRITTEN or not any(_is_same(one, found) for one in findings):
            findings.append(found)

    def drop(self, file: str) -> None:
        """The file is nothing that the tree declares."""
        self._findings.pop(file, None)

    def has_room(self, file: str, level: Level) -> bool:
        """Whether one more is reported of the file; finding its place takes the most time."""
        if self._counts[file, level] < FINDINGS_MAX:
            self._counts[file, level] += 1
            return True
        self._omitted[file, level] += 1
        return False

    def add_omitted(self) -> None:
        """How many were not, once all have been found."""
        for (file, level), count in self._omitted.items():
            self.add(
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
        found: list[Finding] = []
        for file, findings in self._findings.items():
            found.extend(quoted(data, file, _without_zeros(findings)))
        return tuple(sorted(found, key=lambda one: one.sort_key))


def _is_same(one: Finding, other: Finding) -> bool:
    return one.code == other.code and one.place == other.place


def _without_zeros(findings: list[Finding]) -> list[Finding]:
    """Drop the warning of a zero in front where the changed value of the number is reported."""
    spots = {(one.place.line, one.place.column) for one in findings if one.code == _REWRITTEN}
    return [
        one
        for one in findings
        if one.code != "leading-zero" or (one.place.line, one.place.column) not in spots
    ]


def quoted(data: Mapping[str, bytes], file: str, findings: Iterable[Finding]) -> Iterable[Finding]:
    """Findings of a file, with the lines that they are about where its bytes are at hand."""
    if file not in data:
        return findings
    from fleetform.spec.syntax import quote_lines

    return quote_lines(findings, data[file])

"""What a conversion gives: files to write, files to copy, and what has to be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fleetform.spec.findings import Finding, Level, Place
from fleetform.spec.kinds.codes import SUMMARIES


class Written(NamedTuple):
    """A document's file: `path` is relative to the new tree, with forward slashes."""

    path: str
    text: str


class Copied(NamedTuple):
    """A file or folder that a run carries along: where it is, and where it is to lie."""

    source: Path
    path: str


@dataclass(slots=True)
class Conversion:
    """What came of some files; a file that could not be read is in none of the lists."""

    written: list[Written] = field(default_factory=list)
    copied: list[Copied] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Notes:
    """Findings about one file, as they come up."""

    file: str
    lines: list[str]
    findings: list[Finding] = field(default_factory=list)

    def otherwise(self, line: int, detail: str, advice: str = "") -> None:
        """The same is meant, in other words."""
        self._tell(Level.NOTE, "converted-otherwise", line, detail, advice)

    def lost(self, line: int, detail: str, advice: str = "") -> None:
        """It means something else now, or nothing, unless somebody acts."""
        self._tell(Level.WARNING, "not-converted", line, detail, advice)

    def left_out(self, line: int, detail: str, advice: str = "") -> None:
        """It has no form here, and nothing is lost by that."""
        self._tell(Level.NOTE, "not-converted", line, detail, advice)

    def kept(
        self, line: int, detail: str, advice: str = "", *, level: Level = Level.WARNING
    ) -> None:
        """The line stays, and needs something that is not there by itself, or has another effect."""
        self._tell(level, "line-kept", line, detail, advice)

    def refused(self, line: int, detail: str, advice: str = "") -> None:
        """The file is not converted because of it."""
        self._tell(Level.ERROR, "not-converted", line, detail, advice)

    def secret(self, line: int, detail: str, advice: str) -> None:
        # Without the line: it would show what is not to be shown.
        place = Place(self.file, line, 1)
        code = "secret-left-out"
        self.findings.append(Finding(Level.WARNING, code, SUMMARIES[code], place, detail, advice))

    def _tell(self, level: Level, code: str, line: int, detail: str, advice: str) -> None:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        column = len(text) - len(text.lstrip()) + 1
        place = Place(self.file, line, column, max(len(text.strip()), 1))
        self.findings.append(
            Finding(level, code, SUMMARIES[code], place, detail, advice, text=text)
        )

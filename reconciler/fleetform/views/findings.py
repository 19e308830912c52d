"""
Everything that is wrong with a tree, as one value, and the verdict over it.

The formats print a `Report` and decide nothing: which findings fail a check, in which words they
are counted, and how a file is called outside of its tree is said here, once.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from fleetform.model.figures import counted
from fleetform.spec.findings import Finding, Level
from fleetform.spec.identity import FILE_NAME

__all__ = ["Report"]


@dataclass(frozen=True, slots=True)
class Report:
    """
    What a check of a tree, or of one file, has found.

    Attributes:
        findings: In order of place.
        documents_count: How many documents were read.
        files_count: How many files they stand in.
        files: Names of the files that were checked, with those that have no findings; for
            formats that list what passed. Empty when nobody asked for them.
        folder: The tree as seen from the root of its git repository, with forward slashes; empty
            when they are one, and outside of git.
        strict: Warnings fail the check as errors do; notes never do.
    """

    findings: tuple[Finding, ...]
    documents_count: int = 0
    files_count: int = 0
    files: tuple[str, ...] = ()
    folder: str = ""
    strict: bool = False

    @property
    def is_valid(self) -> bool:
        return not any(self.fails(finding) for finding in self.findings)

    def fails(self, finding: Finding) -> bool:
        """Tell whether this finding alone makes the check fail."""
        return finding.level is Level.ERROR or (self.strict and finding.level is Level.WARNING)

    @property
    def verdict(self) -> str:
        """`4 documents in 2 files: 1 error, 0 warnings, 3 notes`; notes only where there are any."""
        counts = [self._counted(Level.ERROR), self._counted(Level.WARNING)]
        if any(finding.level is Level.NOTE for finding in self.findings):
            counts.append(self._counted(Level.NOTE))
        read = f"{counted(self.documents_count, 'document')} in {counted(self.files_count, 'file')}"
        return f"{read}: {', '.join(counts)}"

    def path(self, file: str) -> str:
        """
        Return a file of the tree as the repository knows it, where pipelines look for it.

        What is wrong with the tree as a whole is put into the file that makes the folder one:
        GitHub and GitLab show nothing that is not in a file.
        """
        named = FILE_NAME if file in {"", "."} else file
        return posixpath.normpath(posixpath.join(self.folder, named))

    def _counted(self, level: Level) -> str:
        return counted(sum(finding.level is level for finding in self.findings), level.value)

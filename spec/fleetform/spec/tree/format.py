"""
The files of a tree that are formatted: those that the loader reads, without a run's data.

A link is passed over: what it leads to is formatted where it lies, or lies outside of the tree.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fleetform.spec.findings import Finding, Level
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.nodes import Node, plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.format import Formatted, format_read
from fleetform.spec.tree.payload import payload_of
from fleetform.spec.tree.walk import read_file, walk

__all__ = ["FormattedFile", "format_files"]


class FormattedFile(NamedTuple):
    """
    A file of a tree. `path` is relative to the tree's root, and `before` what it contains;
    what cannot be read at all has only findings.
    """

    path: str
    before: bytes
    formatted: Formatted


class _Read(NamedTuple):
    data: bytes
    nodes: list[Node]
    findings: list[Finding]


def format_files(root: Path) -> Iterator[FormattedFile]:
    """
    Format the files below `root`, an existing folder; in the order of their paths.

    Where it is no environment itself, those of each environment below it come after its own.
    """
    read: dict[str, _Read] = {}
    folders = [""]
    # It grows meanwhile.
    for folder in folders:
        walked = walk(root / folder, prefix=folder)
        declared = posixpath.join(folder, FILE_NAME)
        is_environment = (root / declared).is_file()
        for finding in walked.findings:
            if finding.code == "environment-elsewhere" and not is_environment:
                folders.append(posixpath.dirname(finding.place.file))
            elif finding.code != "file-outside" or finding.level is Level.ERROR:
                yield FormattedFile(finding.place.file, b"", Formatted(b"", (finding,)))
        for path in [*([declared] if is_environment else []), *walked.files]:
            if (root / path).is_symlink():
                continue
            data = read_file(root, path)
            if isinstance(data, Finding):
                yield FormattedFile(path, b"", Formatted(b"", (data,)))
            else:
                read[path] = _Read(data, *read_documents(data, path))
    payload = payload_of({path: [plain(node) for node in one.nodes] for path, one in read.items()})
    for path, one in read.items():
        if path not in payload:
            yield FormattedFile(
                path, one.data, format_read(one.data, path, one.nodes, one.findings)
            )

"""
Format the files of a tree: those that the loader reads, without a run's data.

To format a file that a run carries along would be another execution. A run that carries a folder
along carries the documents in it along too, and these are formatted all the same; a file that is
named by itself is data, whatever it says. A link is passed over: what it leads to is formatted where
it lies, or lies outside of the tree.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fleetform.spec.desired import FILE_NAME
from fleetform.spec.findings import Finding, Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import Node, plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.format import Formatted, format_read
from fleetform.spec.tree.walk import read_file, walk

__all__ = ["FormattedFile", "format_files", "named_files", "payload_of"]


def payload_of(documents: Mapping[str, list[Any]]) -> frozenset[str]:
    """
    Return the files that are data.

    Args:
        documents: Plain values of the documents of each file, by its path from the tree's root.
    """
    declaring = [file for file, values in documents.items() if any(map(_is_fleetform, values))]
    sources = set()
    for file, values in documents.items():
        folder = posixpath.dirname(file)
        for value in filter(_is_fleetform, values):
            sources |= {
                posixpath.normpath(posixpath.join(folder, one)) for one in named_files(value)
            }
    folders = [source for source in sources if not any(_is_below(one, source) for one in declaring)]
    return frozenset(
        file
        for file in documents
        if file in sources or any(_is_below(file, folder) for folder in folders)
    )


def _is_fleetform(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in KINDS


def named_files(value: Any) -> Iterator[str]:
    """Yield what a document names under `files:`, in each of the spellings."""
    said = value.get("files") if isinstance(value, dict) else None
    for entry in said if isinstance(said, list) else [said]:
        if isinstance(entry, str):
            yield entry.partition(":")[0]
        elif isinstance(entry, dict) and isinstance(entry.get("local_path"), str):
            yield entry["local_path"]


def _is_below(file: str, folder: str) -> bool:
    return folder == "." or file.startswith(f"{folder}/")


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

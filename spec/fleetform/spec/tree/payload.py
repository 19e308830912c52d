"""
Which YAML files of a tree are a run's data: formatting one would be another execution.

A run that carries a folder along carries the documents in it along too, and these are formatted
all the same; a file that is named by itself is data, whatever it says.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.kinds import KINDS

__all__ = ["payload_of"]


def payload_of(documents: Mapping[str, list[Any]]) -> frozenset[str]:
    """
    Return the files that are data.

    Args:
        documents: Plain values of the documents of each file, by its path from the tree's root.
    """
    declaring = [file for file, values in documents.items() if any(map(_is_ours, values))]
    sources = set()
    for file, values in documents.items():
        folder = posixpath.dirname(file)
        for value in filter(_is_ours, values):
            sources |= {posixpath.normpath(posixpath.join(folder, one)) for one in _sources(value)}
    folders = [source for source in sources if not any(_is_below(one, source) for one in declaring)]
    return frozenset(
        file
        for file in documents
        if file in sources or any(_is_below(file, folder) for folder in folders)
    )


def _is_ours(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in KINDS


def _sources(value: Mapping[str, Any]) -> Iterator[str]:
    said = value.get("files")
    for entry in said if isinstance(said, list) else [said]:
        if isinstance(entry, str):
            yield entry.partition(":")[0]
        elif isinstance(entry, dict) and isinstance(entry.get("local_path"), str):
            yield entry["local_path"]


def _is_below(file: str, folder: str) -> bool:
    return folder == "." or file.startswith(f"{folder}/")

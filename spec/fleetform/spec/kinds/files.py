"""
Files next to the document that a job receives when it starts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import Facts, unit
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Model, not_carried_out, one_or_many, refuse
from fleetform.spec.quantities.ranges import shown

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def split_paths(value: str) -> tuple[str, str | None]:
    """Split `LOCAL:PATH` at its colon, which is not that of a Windows drive; None if there is none."""
    start = 2 if _DRIVE.match(value) else 0
    local_path, colon, path = value[start:].partition(":")
    return value[:start] + local_path, path if colon else None


class FileEntry(Model):
    """A file or directory next to the document, and its path in the job."""

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {"size": (unit("bytes"),)}

    local_path: Annotated[str, Field(min_length=1, max_length=4000)]
    """
    The file or directory to copy, as a path relative to the folder of the document. Example:
    `./train.py`.
    """

    path: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    """
    Its path in the working directory of the job. Default: the same as `local_path`. Example:
    `code`.
    """

    @property
    def destination(self) -> str:
        return posixpath.normpath(self.path if self.path is not None else self.local_path)


def _file(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    local_path, path = split_paths(value)
    if path is not None and ":" in path:
        raise refuse(
            "bad-value",
            f"{shown(value)} has too many colons.",
            "Write `{local_path: HERE, path: THERE}` for a path that contains one.",
        )
    return {"local_path": local_path} if path is None else {"local_path": local_path, "path": path}


def _check_file(value: FileEntry) -> FileEntry:
    path = value.destination
    if _DRIVE.match(path):
        name = posixpath.basename(path.replace("\\", "/")) or "NAME"
        raise refuse(
            "bad-path",
            f"{shown(path)} is not inside the job's working directory.",
            f"Set its path in the job: `{value.local_path}:{name}`.",
        )
    return value


def files_beyond(entries: Sequence[FileEntry]) -> Iterator[Problem]:
    """Destinations outside of the job's working directory, which are not supported yet."""
    for number, entry in enumerate(entries):
        path = entry.destination
        # `~/x` and `/x` without `path` are files outside of the environment, which is reported.
        if path.split("/")[0] == ".." or (entry.path is not None and path.startswith(("/", "~"))):
            yield not_carried_out(
                ("files", number),
                f"{shown(path)} is outside of the job's working directory, which contains all files.",
                "Choose a path in that directory, and use it in the commands.",
            )


Files = Annotated[
    tuple[Annotated[FileEntry, BeforeValidator(_file), AfterValidator(_check_file)], ...],
    BeforeValidator(one_or_many, json_schema_input_type=str | FileEntry | list[str | FileEntry]),
]

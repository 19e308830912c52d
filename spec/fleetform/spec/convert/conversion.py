"""
Hold the result of a conversion, and compare it with the files that its folder has already.

Scripts are converted one after the other, and several of them use the same files. Equal files are
shared, and a file with other content is never overwritten: a task that was converted before uses it.
"""

from __future__ import annotations

import errno
import filecmp
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from fleetform.spec.findings import SUMMARIES, Finding, Level, Place
from fleetform.spec.names import NAME_LENGTH_MAX, name_problem

__all__ = [
    "Conversion",
    "Copied",
    "Names",
    "Notes",
    "Placement",
    "Written",
    "copy_single",
    "derive_name",
    "place",
]


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
        """It means something else now, or nothing, unless the user acts."""
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


_LEFT_OUT: Final = "__pycache__"
"""Python writes it again, with other content each time."""


@dataclass(slots=True)
class Placement:
    """
    What becomes of the files of a conversion.

    Attributes:
        written: Documents that the folder does not have.
        copied: Single files, links and empty folders that it does not have.
        same: Paths of existing files with the same content.
        other_documents: Paths of existing documents with other content.
        other_files: The same of files that runs use.
    """

    written: list[Written] = field(default_factory=list)
    copied: list[Copied] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    other_documents: list[str] = field(default_factory=list)
    other_files: list[str] = field(default_factory=list)


def place(root: Path, written: Sequence[Written], copied: Sequence[Copied]) -> Placement:
    """Compare documents and files with what is in the folder `root`; nothing is written."""
    placement = Placement()
    for one in written:
        path = root / one.path
        if not os.path.lexists(path):
            placement.written.append(one)
        elif path.is_file() and path.read_bytes() == one.text.encode():
            placement.same.append(one.path)
        else:
            placement.other_documents.append(one.path)
    files: dict[str, Path] = {}
    for copy in copied:
        for file in _single(copy):
            first = files.setdefault(file.path, file.source)
            if first != file.source and not _is_same(file.source, first):
                placement.other_files.append(file.path)
    for name, source in files.items():
        if _is_same(source, root / name):
            placement.same.append(name)
        elif os.path.lexists(root / name) or not _has_room(root, name):
            placement.other_files.append(name)
        else:
            placement.copied.append(Copied(source, name))
    return placement


def copy_single(source: Path, path: Path) -> None:
    """
    Copy one file, link or empty folder.

    Raises:
        FileExistsError: There is something meanwhile.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    if source.is_dir() and not source.is_symlink():
        path.mkdir()
    else:
        shutil.copy2(source, path, follow_symlinks=not source.is_symlink())


def _single(copy: Copied) -> Iterator[Copied]:
    """Yield the files, links and empty folders of a copy; a link to all of it is followed."""
    top = copy.source.resolve()
    if not top.is_dir():
        yield Copied(top, copy.path)
        return
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(one for one in folders if one != _LEFT_OUT)
        inside = Path(folder).relative_to(top).as_posix()
        below = copy.path if inside == "." else f"{copy.path}/{inside}"
        links = [one for one in folders if Path(folder, one).is_symlink()]
        for name in sorted([*names, *links]):
            yield Copied(Path(folder, name), f"{below}/{name}")
        if not folders and not names:
            yield Copied(Path(folder), below)


def _is_same(one: Path, other: Path) -> bool:
    if one.is_symlink():
        return other.is_symlink() and one.readlink() == other.readlink()
    if one.is_dir():
        return other.is_dir()
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def _has_room(root: Path, path: str) -> bool:
    """Tell whether each folder above `path` is a folder of the environment, or is still to be created."""
    above = [root / one for one in Path(path).parents if one != Path()]
    return not any(os.path.lexists(one) and (one.is_symlink() or not one.is_dir()) for one in above)


# Names for what had none, or had one that cannot be a name here.


def derive_name(text: str, *, otherwise: str = "run") -> str:
    """
    Return a name that is as near to `text` as a name can be.

    Args:
        text: A file's name without its endings, or what it was called elsewhere.
        otherwise: What is put before what would begin with a digit, and stands for what has no
            letter at all.
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not words[:1].isalpha():
        words = f"{otherwise}-{words}".strip("-")
    name = words[:NAME_LENGTH_MAX].rstrip("-")
    return name if name_problem(name) is None else f"{otherwise}-{name}"[:NAME_LENGTH_MAX]


class Names:
    """The names that are taken, by kind: dstack tells runs apart by file, and a tree does not."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str]] = set()

    def take(self, kind: str, name: str) -> str:
        """Return the name, or if it is taken the first of `name-2`, `name-3` … that is not."""
        chosen, number = name, 2
        while (kind, chosen) in self._taken:
            ending = f"-{number}"
            chosen = f"{name[: NAME_LENGTH_MAX - len(ending)]}{ending}"
            number += 1
        self._taken.add((kind, chosen))
        return chosen

    def has(self, kind: str, name: str) -> bool:
        return (kind, name) in self._taken

"""
Files that a run names: their digests, sizes and modes, directories expanded.

The digest of a file is part of the run's own, so that a changed `train.py` is a changed run. A
file's content is read in pieces, never as a whole. Links are followed only to where they stay
inside of the tree: what lies outside of it is in no commit.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import nearest
from fleetform.spec.quantities import format_bytes
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.tree.cache import SETTLED_NS, FilesAnswer
from fleetform.spec.tree.walk import LeadsOutError, is_folder, open_below

# Files travel to each host of a run; data belongs into volumes.
COUNT_MAX = 10_000
BYTES_MAX = 2 * 2**30
_CHUNK = 1 << 20
# What programs leave behind; nobody means it, and it would make a new run of the same code.
_IGNORED = frozenset({"__pycache__", ".git", ".venv", ".ipynb_checkpoints", "node_modules"})

Cache = MutableMapping[str, str]
"""SHA-256 by a file's identity: device, inode, size and time."""


class FileEntry(Protocol):
    """An entry of `files`: a path in the tree, and one in the job's working directory."""

    @property
    def local_path(self) -> str: ...
    @property
    def destination(self) -> str: ...


class _Asked(NamedTuple):
    local_path: str
    destination: str


class _Refusal(Exception):
    """Why an entry of `files` cannot be used."""

    def __init__(self, code: str, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.advice = advice


class _Elsewhere(_Refusal):
    """A path that says itself that it leads out of the tree, unlike a link that turns out to."""


@dataclass(slots=True)
class Files:
    """
    The files of a tree, each read once.

    Attributes:
        roots: Folders of documents, relative to `root`, which is the empty one: the bases'. What
            a document names lies in the folder that it lies in itself.
        contents: Path on this machine by SHA-256, of all files seen so far.
        sources: Paths in the tree that documents name, files and folders.
        answers: What was resolved, in order; whoever wants to know clears it before.
        all_answers: The same of the whole tree, each once; None where one cannot be asked again.
    """

    root: Path
    cache: Cache = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    roots: list[str] = field(default_factory=list)
    answers: list[FilesAnswer] = field(default_factory=list)
    all_answers: dict[FilesAnswer, None] | None = field(default_factory=dict)
    _known: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    _expanded: dict[tuple[str, str, str], list[dict[str, Any]]] = field(default_factory=dict)
    _real_root: str = ""
    _room: int = BYTES_MAX

    def __post_init__(self) -> None:
        self._real_root = os.path.realpath(self.root)

    def resolve(
        self, entries: Sequence[FileEntry], folder: str | Sequence[str]
    ) -> tuple[list[dict[str, Any]], list[Problem]]:
        """
        The canonical `files` of a document in `folder`, sorted by path, and what is wrong.

        `folder` is where the document's file lies, relative to the root; empty for the root. One
        for each entry, where they were not all written in the same file.
        """
        found: dict[str, dict[str, Any]] = {}
        away: list[dict[str, Any]] = []
        problems = []
        self._room = BYTES_MAX
        for number, entry in enumerate(entries):
            try:
                where = folder if isinstance(folder, str) else folder[number]
                for item in self._expand_once(entry, where):
                    _claim(found, item)
            except _Elsewhere as elsewhere:
                away.append({"path": entry.destination, "local_path": entry.local_path})
                problems.append(
                    Problem(
                        "not-supported",
                        ("files", number),
                        elsewhere.detail,
                        elsewhere.advice,
                        level=Level.NOTE,
                        at_key=True,
                    )
                )
            except _Refusal as refusal:
                problems.append(
                    Problem(refusal.code, ("files", number), refusal.detail, refusal.advice)
                )
                if refusal.code == "files-too-large":
                    break  # So is all with whatever follows.
        items = sorted([*found.values(), *away], key=lambda item: item["path"])
        if isinstance(folder, str):
            asked = tuple((entry.local_path, entry.destination) for entry in entries)
            answer = FilesAnswer(folder, asked, _digest(items, problems))
            self.answers.append(answer)
            if self.all_answers is not None:
                self.all_answers[answer] = None
        else:
            self.all_answers = None
        return items, problems

    def answers_again(self, answer: FilesAnswer) -> bool:
        """Whether what was asked before comes to the same now."""
        self.resolve([_Asked(*entry) for entry in answer.entries], answer.folder)
        return self.answers.pop() == answer

    def _expand_once(self, entry: FileEntry, folder: str) -> list[dict[str, Any]]:
        # Ten thousand runs of one script name it ten thousand times.
        key = (entry.local_path, entry.destination, folder)
        if key not in self._expanded:
            self._expanded[key] = list(self._expand(entry, folder))
        else:
            self._spend(sum(item["size"] for item in self._expanded[key]))
        return self._expanded[key]

    def _spend(self, size: int) -> None:
        """Take room for a file before it is read: one of holes costs its author nothing."""
        self._room -= size
        if self._room < 0:
            raise _too_large(BYTES_MAX - self._room)

    def _expand(self, entry: FileEntry, folder: str) -> Iterator[dict[str, Any]]:
        root = next((one for one in self.roots if f"{folder}/".startswith(f"{one}/")), "")
        path = self._inside(entry.local_path, folder, root)
        self.sources.add(path)
        full = os.path.normpath(f"{self._real_root}/{path}")
        destination = entry.destination
        if not is_folder(Path(full)):
            yield self._describe(full, entry.local_path, destination)
            return
        base = "" if destination == "." else f"{destination}/"
        for name in _below(full):
            named = f"{entry.local_path}/{name}"
            self._check_link(f"{full}/{name}", named, root)
            yield self._describe(f"{full}/{name}", named, base + name)

    def _inside(self, local_path: str, folder: str, root: str) -> str:
        """The path from the environment's folder, which has to stay below the document's root."""
        if local_path.startswith(("/", "~")):
            raise _elsewhere(local_path)
        if "\0" in local_path:
            raise _Refusal(
                "bad-path",
                f"{shown(local_path)} contains a null character, which no file name can have.",
                "Correct the name.",
            )
        path = os.path.normpath(f"{folder or '.'}/{local_path}")
        if not f"{path}/".startswith(f"{root}/") if root else path.split("/")[0] == "..":
            raise _elsewhere(local_path)
        self._check_link(f"{self._real_root}/{path}", local_path, root)
        return path

    def _check_link(self, full: str, named: str, root: str) -> None:
        real = os.path.realpath(full)
        inside = os.path.normpath(f"{self._real_root}/{root}")
        if real != inside and not real.startswith(inside + os.sep):
            raise _outside(named)

    def _describe(self, full: str, named: str, destination: str) -> dict[str, Any]:
        if full in self._known:
            self._spend(self._known[full][1])
        else:
            try:
                self._known[full] = self._read(full)
            except LeadsOutError:
                raise _outside(named) from None
            except FileNotFoundError:
                raise _missing(named, full) from None
            except OSError as exc:
                raise _Refusal(
                    "file-unreadable",
                    f"{shown(named)}: {exc.strerror or exc}.",
                    "Make it readable for the user who runs fleetform.",
                ) from exc
        sha256, size, mode = self._known[full]
        self.contents[sha256] = full
        return {"path": destination, "sha256": sha256, "size": size, "mode": mode}

    def _read(self, full: str) -> tuple[str, int, int]:
        # A link may have taken the file's place since its way was judged.
        root = Path(self._real_root)
        descriptor = open_below(root, os.path.relpath(full, root))
        try:
            seen = os.fstat(descriptor)
            if not stat.S_ISREG(seen.st_mode):
                raise _Refusal("bad-path", f"{shown(full)} is not a plain file.", "Remove it.")
            self._spend(seen.st_size)
            # Only whether it is a program is the author's; the rest is this machine's umask.
            mode = 0o755 if seen.st_mode & 0o100 else 0o644
            return self._digest(descriptor, seen), seen.st_size, mode
        finally:
            os.close(descriptor)

    def _digest(self, descriptor: int, seen: os.stat_result) -> str:
        identity = (
            f"{seen.st_dev}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}"
        )
        known = self.cache.get(identity)
        if known is not None:
            return known
        digest = hashlib.sha256()
        left = seen.st_size
        while chunk := os.read(descriptor, min(_CHUNK, left + 1)):
            digest.update(chunk)
            left -= len(chunk)
            if left < 0:
                break
        if left:
            raise _Refusal(
                "file-changed",
                "The file changed while it was read.",
                "Try again when no program writes to it.",
            )
        sha256 = digest.hexdigest()
        if time.time_ns() - max(seen.st_mtime_ns, seen.st_ctime_ns) > SETTLED_NS:
            self.cache[identity] = sha256
        return sha256


def _digest(items: Sequence[dict[str, Any]], problems: Sequence[Problem]) -> str:
    return hashlib.sha256(repr((items, problems)).encode("utf-8", "backslashreplace")).hexdigest()


def _below(folder: str) -> list[str]:
    """Files below a folder, sorted, by their path from it; folders that are links are not entered."""
    names: list[str] = []
    for where, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = sorted(
            name for name in folders if name not in _IGNORED and not Path(where, name).is_symlink()
        )
        names.extend(os.path.relpath(f"{where}/{name}", folder) for name in files)
        if len(names) > COUNT_MAX:
            raise _Refusal(
                "files-too-large",
                f"The folder has more than {COUNT_MAX} files.",
                "Name what the run needs of it, or put data into a volume.",
            )
    return sorted(name for name in names if not name.endswith(".pyc"))


def _raise(exc: OSError) -> None:
    raise _Refusal(
        "file-unreadable",
        f"{shown(str(exc.filename))}: {exc.strerror}.",
        "Make it readable for the user who runs fleetform.",
    ) from exc


def _claim(found: dict[str, dict[str, Any]], item: dict[str, Any]) -> None:
    other = found.setdefault(item["path"], item)
    if other["sha256"] != item["sha256"]:
        raise _Refusal(
            "path-claimed-twice",
            f"Two different files would be at {shown(item['path'])} in the working directory.",
            "Give one of them another path: `./file:elsewhere/file`.",
        )


def _too_large(size: int) -> _Refusal:
    return _Refusal(
        "files-too-large",
        f"They have {format_bytes(size)} together, and {format_bytes(BYTES_MAX)} are the most that a run may have.",
        "Put data into a volume.",
    )


def _elsewhere(named: str) -> _Elsewhere:
    return _Elsewhere(
        "not-supported",
        f"{shown(named)} is outside of the configuration, so no commit contains it. This is not supported yet.",
        "Put the file into the configuration, or the data into a volume.",
    )


def _outside(named: str) -> _Refusal:
    return _Refusal(
        "file-outside",
        f"{shown(named)} leads out of the configuration, so no commit contains its target.",
        "Put the file into the configuration, or the data into a volume.",
    )


def _missing(named: str, full: str) -> _Refusal:
    path = Path(full)
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        beside = []
    close = nearest(path.name, beside)
    return _Refusal(
        "file-missing",
        f"{shown(named)} does not exist.",
        f"Did you mean `{close}`, which is in the same folder?"
        if close
        else "Paths are relative to the document's folder.",
    )

"""
Keep readings of files between two loads of one configuration, in memory.

A reading is found by the content of its file. Most files are not opened for that: while the inode, size
and times of a file are the same, its content is the same. A file that is younger than one tick of the
clock may change without another time, so it is opened at each load until it is old enough.

A reading is used only while everything else that it depends on is the same. The loader checks that each
time (`Conditions`), so a cache can be outdated, but never wrong. `cache_file` writes a cache to disk and
reads it back.

An `Outcome` is what the passes after reading need of one document, without nodes and models: a document
that was just read and one from the cache are the same value, so that no later pass can tell them apart. A
`Header` has the few scalars of a document by which overlays choose it, in place of its nodes.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Finding, Level, Place, Problem
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, Span
from fleetform.spec.overlay.documents import Written
from fleetform.spec.references import Reference

if TYPE_CHECKING:
    from fleetform.spec.tree.whole import Whole

__all__ = [
    "ENVIRONMENT_UID",
    "SETTLED_NS",
    "Conditions",
    "FilesAnswer",
    "Given",
    "Header",
    "Kept",
    "KeptFile",
    "Outcome",
    "ReadingCache",
    "Row",
    "header_of",
    "is_overlaid",
    "look_of",
    "standing_for",
]


ENVIRONMENT_UID = "\0uid"
"""
The key of the values under which the environment's uid stands, by which secrets are sealed in names of elements.

No expression can name it. It is one of the values because a reading is valid only if the values are equal.
"""


class Row(NamedTuple):
    """
    One resource of a document.

    Attributes:
        own: Canonical fields that it has beside those all elements of the document share.
        digest: Of the whole canonical document.
        execution_digest: Of what makes up its execution.
        own_digest: Of the document before anything inherited was merged in.
    """

    name: str
    identity: str
    own: Mapping[str, Any]
    digest: str
    execution_digest: str
    own_digest: str


class FilesAnswer(NamedTuple):
    """
    The files that `files:` of a document names.

    Attributes:
        folder: Where paths begin.
        entries: Path in the tree and in the working directory.
        digest: Of what was found, to compare two answers.
    """

    folder: str
    entries: tuple[tuple[str, str], ...]
    digest: str


class Conditions(NamedTuple):
    """
    What an outcome depends on besides the text of its file: it is valid while these are the same.

    Attributes:
        values: Digest of the environment's values; empty where none can be named.
        spent: What it used of the budget: elements, characters written and digested.
        files: Its answers, in order.
    """

    values: str = ""
    spent: tuple[int, int, int] = (0, 0, 0)
    files: tuple[FilesAnswer, ...] = ()


_NOWHERE = Place("")
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Outcome(NamedTuple):
    """
    Attributes:
        type: Its `type:`; empty if that is no text.
        keys: What it declares, as far as known; several if its kind is unknown.
        place: Of its first character.
        problems: What is wrong with it by itself.
        is_read: The model of its kind read it, if need be without wrong fields.
        is_spoiled: Something inherited does not fit it, which is reported at what is inherited.
        shared: Canonical fields that all of its resources have.
        documents: The distinct canonical forms, with the fields that refer to or require something.
        rows: Its resources.
        references: What it mentions, each once.
        required: What must exist before its resources do; None where that depends on the row.
    """

    type: str = ""
    keys: tuple[ResourceKey, ...] = ()
    place: Place = _NOWHERE
    problems: Sequence[Problem] = ()
    is_read: bool = False
    is_spoiled: bool = False
    shared: Mapping[str, Any] = _NO_FIELDS
    documents: Sequence[Mapping[str, Any]] = ()
    rows: Sequence[Row] = ()
    references: Sequence[Reference] = ()
    required: tuple[ResourceKey, ...] | None = None

    @property
    def is_broken(self) -> bool:
        return self.is_spoiled or any(one.level is Level.ERROR for one in self.problems)


SETTLED_NS = 2_000_000_000
"""
Files younger than this may change again within one tick of their time stamp, so that the time
stamp says nothing. Two seconds is FAT's tick, the coarsest there is.
"""

_DIGESTS_MAX = 100_000

Header: TypeAlias = Sequence[tuple[str, str | int | float | bool | None, str]]
"""Those top-level scalars by which overlays choose documents: key, value, and as it is written."""


class Kept(NamedTuple):
    """
    One document: its outcome, the conditions of that, and its problems as they were reported.

    The problems include those with other documents: if they occur again, their places are known.
    """

    header: Header
    outcome: Outcome
    conditions: Conditions
    findings: Mapping[Problem, Finding]


class KeptFile:
    """
    The reading of one file's content. It never changes: resources are made from it when they are first used,
    long after another load.

    Args:
        look: How the file looked when it last had this content; empty if unknown.
        body: The documents as they lie on disk; empty when they have not been written yet.
        decode: Gives the documents, where they have not been needed yet.
    """

    __slots__ = ("_decode", "_documents", "body", "look", "path", "sha256")

    def __init__(
        self,
        path: str,
        sha256: str,
        look: str,
        documents: Sequence[Kept] = (),
        *,
        body: bytes = b"",
        decode: Callable[[], Sequence[Kept]] | None = None,
    ) -> None:
        self.path = path
        self.sha256 = sha256
        self.look = look
        self.body = body
        self._documents = documents
        self._decode = decode

    @property
    def documents(self) -> Sequence[Kept]:
        """
        Raises:
            ValueError: It comes from disk, and is not what was written there.
        """
        if self._decode is not None:
            self._documents = self._decode()
            self._decode = None
        return self._documents


@dataclass(slots=True)
class ReadingCache:
    """
    The readings of one configuration, kept between two loads. One load at a time.

    Attributes:
        digests: SHA-256 of files that documents name, by their identity on disk.
        whole: The result of the last load; None if unknown.
        is_changed: It differs from what is on disk.
    """

    digests: MutableMapping[str, str] = field(default_factory=dict)
    whole: Whole | None = None
    is_changed: bool = False
    _files: dict[str, KeptFile] = field(default_factory=dict)
    _used: dict[str, KeptFile] = field(default_factory=dict)
    _digests_count: int = 0

    def begin(self) -> None:
        """Begin a load."""
        self._used = {}
        self._digests_count = len(self.digests)

    def end(self) -> None:
        """End a load: readings that it did not use are dropped."""
        if len(self._used) != len(self._files):
            self._files = self._used
            self.is_changed = True
        self._end_digests()

    def end_recalled(self) -> None:
        """End a load of which the result was known: all readings are in use."""
        self._end_digests()

    def _end_digests(self) -> None:
        self.is_changed = self.is_changed or len(self.digests) != self._digests_count
        while len(self.digests) > _DIGESTS_MAX:
            del self.digests[next(iter(self.digests))]

    def known(self, path: str) -> KeptFile | None:
        """Return the last reading of a file."""
        return self._files.get(path)

    def look_again(self, known: KeptFile, look: str) -> None:
        """Note that a file with the content of this reading looks like `look` now."""
        if known.look != look:
            known.look = look
            self.is_changed = True

    def by_look(self, path: str, look: str) -> KeptFile | None:
        """Return the reading of a file that has not changed since."""
        known = self._files.get(path)
        if known is None or not look or known.look != look:
            return None
        self._used[path] = known
        return known

    def by_content(self, path: str, look: str, sha256: str) -> KeptFile | None:
        """Return the reading of a file with this content, which looks like `look` now."""
        known = self._files.get(path)
        if known is None or known.sha256 != sha256:
            return None
        self.look_again(known, look)
        self._put(known)
        return known

    def keep(self, made: KeptFile) -> None:
        """Add a new reading."""
        self.is_changed = True
        self._put(made)

    def keep_whole(self, whole: Whole | None) -> None:
        """Keep the result of a load; None: unknown."""
        self.is_changed = self.is_changed or whole is not self.whole
        self.whole = whole

    def drop(self, path: str) -> None:
        """Remove a reading that cannot be used."""
        self.is_changed = True
        self._used.pop(path, None)
        self._files.pop(path, None)

    def current(self) -> Iterator[KeptFile]:
        """Return the readings of all files."""
        yield from self._files.values()

    def fill(self, files: Sequence[KeptFile]) -> None:
        """Fill in the readings from disk."""
        self._files = {kept.path: kept for kept in files}

    def _put(self, kept: KeptFile) -> None:
        self._files[kept.path] = self._used[kept.path] = kept


def look_of(seen: os.stat_result) -> str:
    """Return how a plain file looks to the system; empty if that does not identify its content."""
    changed_ns = max(seen.st_mtime_ns, seen.st_ctime_ns)
    if not stat.S_ISREG(seen.st_mode) or time.time_ns() - changed_ns < SETTLED_NS:
        return ""
    return f"{seen.st_dev}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}"


Given: TypeAlias = KeptFile | list[Written]
"""A file's documents: as they were read before, or as they are."""

# What `overlay` asks of a document before it changes it.
_CHOSEN_BY = frozenset({"type", "name", "profile"})
_NO_SPAN = Span(0, 0, 0)


def header_of(node: Node) -> Header | None:
    """Return what overlays need of a document; None if they need its nodes."""
    if not isinstance(node, MappingNode):
        return ()
    said = [(key.raw, value) for key, value in node.entries if key.raw in _CHOSEN_BY]
    if any(not isinstance(value, ScalarNode) for _, value in said):
        return None
    header = tuple(
        (key, value.value, value.raw) for key, value in said if isinstance(value, ScalarNode)
    )
    # A profile becomes a part of others.
    return None if ("type", "profile") in {(key, raw) for key, _, raw in header} else header


def standing_for(header: Header) -> Node:
    """Return a node with these scalars, for overlays."""
    entries = [
        (ScalarNode(key, key, "", _NO_SPAN), ScalarNode(value, raw, "", _NO_SPAN))
        for key, value, raw in header
    ]
    return MappingNode(tuple(entries), _NO_SPAN)


def is_overlaid(files: Iterable[Given]) -> bool:
    """Whether overlays may change documents: one of them is or has a profile."""
    return any(
        any(_has_profile(one.header) for one in file.documents)
        if isinstance(file, KeptFile)
        else any(_is_overlaying(one.node) for one in file)
        for file in files
    )


def _is_overlaying(node: Node) -> bool:
    """Whether a document is a profile, or names one."""
    return isinstance(node, MappingNode) and any(
        key.raw == "profile" or (key.raw == "type" and value[0] == "profile")
        for key, value in node.entries
    )


def _has_profile(header: Header) -> bool:
    return any(key == "profile" for key, _, _ in header)

"""
Keep what files came to between two loads of one tree, in memory.

A reading is found by what its file contains. Most files are not opened for that: while the system
says that a file is the one it was, by its inode, size and times, its content is known. A file
younger than the clock's tick may change without that showing, so it is opened each time until it
has settled.

A reading is used only while everything else that it depends on is the same; the loader proves that
each time (`Conditions`), so what a cache holds can be late, and never wrong. `cache_file` writes
one to disk and reads it back.

An `Outcome` is what the passes after reading need of one document, with no node and no model in it:
a document that was read a moment ago and one that comes from the cache are the same value here, so
that no later pass can tell the two apart. A `Header` has the few scalars of a document by which
overlays choose it, in place of its nodes.
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
Among the values that a reading depends on: the key by which secrets are sealed in names of elements.

No expression can name it. It is one of the values because a kept reading holds only where they are equal.
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
    What `files:` of a document came to.

    Attributes:
        folder: Where paths begin.
        entries: Path in the tree and in the working directory.
        digest: Of what was found there, by which another answer is told from this one.
    """

    folder: str
    entries: tuple[tuple[str, str], ...]
    digest: str


class Conditions(NamedTuple):
    """
    What an outcome depends on besides the text of its file: it holds while these do.

    Attributes:
        values: Digest of the environment's values; empty where none can be named.
        spent: What it took of the tree's budget: elements, characters written and digested.
        files: What it asked for, in order.
    """

    values: str = ""
    spent: tuple[int, int, int] = (0, 0, 0)
    files: tuple[FilesAnswer, ...] = ()


_NOWHERE = Place("")
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Outcome(NamedTuple):
    """
    Attributes:
        type: What its `type:` says; empty where that is no text.
        keys: What it declares, as far as can be told; several when its kind cannot.
        place: Of its first character.
        problems: What is wrong with it by itself.
        is_read: It got as far as its kind, if need be without fields that are wrong.
        is_spoiled: Something inherited does not fit it, which is told where that stands.
        shared: Canonical fields that all of its resources have.
        documents: The distinct canonical forms as far as they refer to or ask for anything.
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
    One document: its outcome, when that holds, and its problems as they were reported.

    Problems that it had with others are among those told; where they come up again, their places
    need not be looked for.
    """

    header: Header
    outcome: Outcome
    conditions: Conditions
    findings: Mapping[Problem, Finding]


class KeptFile:
    """
    The reading of one file's content, which stays as it was made: resources are made from it when
    somebody asks, long after another load.

    Args:
        look: How the file looked that had this content last; empty when nobody knows.
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
    What is kept between two loads of one tree. One load at a time.

    Attributes:
        digests: SHA-256 of files that documents name, by their identity on disk.
        whole: What the tree as a whole came to; None while nobody knows.
        is_changed: Something was learned that is worth writing down.
    """

    digests: MutableMapping[str, str] = field(default_factory=dict)
    whole: Whole | None = None
    is_changed: bool = False
    _files: dict[str, KeptFile] = field(default_factory=dict)
    _used: dict[str, KeptFile] = field(default_factory=dict)
    _digests_count: int = 0

    def begin(self) -> None:
        """A load begins."""
        self._used = {}
        self._digests_count = len(self.digests)

    def end(self) -> None:
        """A load is over: what it did not use is dropped."""
        if len(self._used) != len(self._files):
            self._files = self._used
            self.is_changed = True
        self._end_digests()

    def end_recalled(self) -> None:
        """The same of a load for which the tree as a whole was known: all of it is in use."""
        self._end_digests()

    def _end_digests(self) -> None:
        self.is_changed = self.is_changed or len(self.digests) != self._digests_count
        while len(self.digests) > _DIGESTS_MAX:
            del self.digests[next(iter(self.digests))]

    def known(self, path: str) -> KeptFile | None:
        """The reading of what a file contained last."""
        return self._files.get(path)

    def look_again(self, known: KeptFile, look: str) -> None:
        """A file with the content of a reading that is kept looks as `look` now."""
        if known.look != look:
            known.look = look
            self.is_changed = True

    def by_look(self, path: str, look: str) -> KeptFile | None:
        """The reading of a file that has not changed since."""
        known = self._files.get(path)
        if known is None or not look or known.look != look:
            return None
        self._used[path] = known
        return known

    def by_content(self, path: str, look: str, sha256: str) -> KeptFile | None:
        """The reading of a file with this content, which looks as `look` now."""
        known = self._files.get(path)
        if known is None or known.sha256 != sha256:
            return None
        self.look_again(known, look)
        self._put(known)
        return known

    def keep(self, made: KeptFile) -> None:
        """A reading that was just made."""
        self.is_changed = True
        self._put(made)

    def keep_whole(self, whole: Whole | None) -> None:
        """What the configuration declares from now on; None: unknown."""
        self.is_changed = self.is_changed or whole is not self.whole
        self.whole = whole

    def drop(self, path: str) -> None:
        """A reading that turned out to be of no use."""
        self.is_changed = True
        self._used.pop(path, None)
        self._files.pop(path, None)

    def current(self) -> Iterator[KeptFile]:
        """Readings of what files contain now."""
        yield from self._files.values()

    def fill(self, files: Sequence[KeptFile]) -> None:
        """Put in what was written down."""
        self._files = {kept.path: kept for kept in files}

    def _put(self, kept: KeptFile) -> None:
        self._files[kept.path] = self._used[kept.path] = kept


def look_of(seen: os.stat_result) -> str:
    """How a plain file looks to the system; empty where that says nothing of its content."""
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
    """What overlays ask of a document; None where that takes its nodes."""
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
    """A node that overlays may look at."""
    entries = [
        (ScalarNode(key, key, "", _NO_SPAN), ScalarNode(value, raw, "", _NO_SPAN))
        for key, value, raw in header
    ]
    return MappingNode(tuple(entries), _NO_SPAN)


def is_overlaid(files: Iterable[Given]) -> bool:
    """Whether documents may come to anything else than what is written: some is or has a profile."""
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

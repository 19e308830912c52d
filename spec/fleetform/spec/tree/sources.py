"""
Read the files of a tree: their documents as nodes, or as a reading that is still good.

A document of a kept reading is represented by a node with the few scalars by which overlays choose
documents. If an overlay changes the document, or its reading is no longer valid, its file is parsed after
all.

Some files of dstack are lists of documents and have no `type`: `projects:` of a server's config,
`profiles:`. Each entry of the list is read as a document of its own, of the type that the list
implies, and keeps its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fleetform.spec.desired import FILE_NAME, ResourceKey
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.interpolate import MARK
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import bare_word, name_problem, nearest, secret_name_problem
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.overlay.documents import Written
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.tree.cache import KeptFile, ReadingCache, standing_for
from fleetform.spec.tree.walk import Inside, finding, read_file

__all__ = ["IMPLIED_TYPES", "Sources", "Stub", "implied"]


# What a document says it is: its type and name, and what is wrong where it does not say so.


def not_a_document(value: Any) -> Problem:
    if value is None:
        return Problem(
            "empty-document", (), "The document is empty.", "Remove it, or declare a resource."
        )
    return Problem(
        "not-a-document",
        (),
        "A document is a mapping of fields to values, and this is not.",
        "Begin with `type: task`, `type: fleet` or `type: volume`.",
    )


def type_problem(value: Mapping[str, Any]) -> Problem:
    """Why the document's type is none that can be read."""
    if "type" not in value and _foreign(value):
        kind = _foreign(value)
        close = _CALLED.get(bare_word(kind))
        return Problem(
            "missing-type",
            ("kind",),
            f"The document is a {shown(kind)} of Kubernetes, which fleetform does not read.",
            f"Write a `type: {close}`; `fleetform explain {close}` shows its fields."
            if close
            else "Keep it outside of this configuration.",
            at_key=True,
        )
    if "type" not in value:
        close = nearest("type", value)
        return Problem(
            "missing-type",
            (close,) if close else (),
            "The document has no `type`, so its kind is unknown.",
            f"Did you mean `type` by {shown(close)}?"
            if close
            else f"Add `type:` with one of {_listed()}. YAML that is data belongs under a name in a run's `files:`.",
            at_key=True,
        )
    named = value["type"]
    if named == "environment":
        return Problem(
            "environment-elsewhere",
            ("type",),
            f"An environment is declared in `{FILE_NAME}` at the top of the configuration only.",
            "Move the document there, or remove it.",
        )
    close = None
    if isinstance(named, str):
        close = _CALLED.get(bare_word(named)) or nearest(named, KINDS)
    return Problem(
        "unknown-type",
        ("type",),
        f"{shown(named)} is not a kind of document.",
        f"Did you mean `{close}`?" if close else f"Choose one of {_listed()}.",
    )


# What others call the same, in small letters and without marks between words.
_CALLED: Mapping[str, str] = {
    **dict.fromkeys(("job", "cronjob", "pod", "batch", "sbatch", "run", "sweep"), "task"),
    **dict.fromkeys(("devenv", "notebook", "workspace", "interactive"), "dev-environment"),
    **dict.fromkeys(("deployment", "endpoint", "statefulset", "inference"), "service"),
    **dict.fromkeys(("cluster", "pool", "nodepool", "nodegroup", "hosts", "instances"), "fleet"),
    **dict.fromkeys(("disk", "pvc", "persistentvolumeclaim", "storage"), "volume"),
    **dict.fromkeys(("ingress", "loadbalancer"), "gateway"),
    **dict.fromkeys(("partition", "localqueue", "clusterqueue"), "queue"),
    **dict.fromkeys(("qos", "resourcequota", "limits", "budget"), "quota"),
    **dict.fromkeys(("account", "namespace", "team", "group"), "project"),
    **dict.fromkeys(("person", "serviceaccount"), "user"),
    "maintenance": "reservation",
}


def _foreign(value: Mapping[str, Any]) -> str:
    """The kind that an object of Kubernetes says it is; empty for anything else."""
    kind = value.get("kind")
    return kind if isinstance(kind, str) and "apiVersion" in value else ""


def _listed() -> str:
    """The types, without those of the two dozen backends, each of which is one."""
    names = sorted(name for name, kind in KINDS.items() if kind.name != "backend")
    return ", ".join(f"`{name}`" for name in names) + ", or a type of backend, such as `aws`"


def declared_keys(value: Mapping[str, Any], kind: str | None) -> tuple[ResourceKey, ...]:
    # A backend is called what it is, unless it has a name.
    name = value.get("name")
    if name is None and kind == "backend":
        name = value.get("type")
    problem = secret_name_problem if kind == "secret" else name_problem
    if not isinstance(name, str) or problem(name) is not None:
        return ()
    return (ResourceKey(kind, name),) if kind else any_kind(name)


def any_kind(name: str) -> tuple[ResourceKey, ...]:
    """A document of unknown kind stands for each: better one resource too many left alone."""
    return tuple(ResourceKey(kind, name) for kind in sorted({kind.name for kind in KINDS.values()}))


IMPLIED_TYPES: Mapping[str, str] = {"projects": "project", "profiles": "profile"}
"""By the only field of such a file: the type of what it lists."""


def implied(node: Node) -> Iterator[Node]:
    """Yield the documents of a node: itself, or the entries of its only field."""
    if not isinstance(node, MappingNode) or len(node.entries) != 1:
        yield node
        return
    key, listed = node.entries[0]
    if key.raw not in IMPLIED_TYPES or not isinstance(listed, SequenceNode):
        yield node
        return
    for item in listed.items:
        yield _typed(item, IMPLIED_TYPES[key.raw], key)


def _typed(item: Node, type_name: str, key: ScalarNode) -> Node:
    if not isinstance(item, MappingNode) or item.get("type") is not None:
        return item
    field = ScalarNode("type", "type", "", key.place)
    return MappingNode(
        ((field, ScalarNode(type_name, type_name, "", key.place)), *item.entries), item.place
    )


_MARK = MARK.encode()
# The names that a file declares that cannot be parsed, by its lines.
_NAME_LINE = re.compile(
    rb"^name:[ \t]*[\"']?([a-z][a-z0-9-]{1,40})[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE
)


class Stub(NamedTuple):
    """The document of a kept file that a node represents, by its number."""

    file: KeptFile
    number: int
    node: Node
    """Kept here, so that its id stays its own."""


class Sources:
    """
    Args:
        root: The environment's folder.
        buffers: What stands for a file's content.
        cache: Readings of before; None: every file is parsed.
        tell: Takes what is wrong with a file.

    Attributes:
        data: The bytes of the files that were read.
        files: All files that were looked into, by what they contain or by what is known of it.
        unread: Files whose documents are unknown.
        broken: What those declare, by their lines.
        kept_files: Readings whose files still have the same content.
        counts: How many documents each parsed file gave.
        parsed: SHA-256 of files that were read, and how they looked before; where parsing found
            something, they are not among them.
        base_of: The folder of each file that was read, of those the tree is made of.
    """

    def __init__(
        self,
        root: Path,
        buffers: Mapping[str, bytes],
        cache: ReadingCache | None,
        tell: Callable[[Finding], None],
    ) -> None:
        self._root = root
        self._inside = Inside(root)
        self._buffers = buffers
        self._cache = cache
        self._tell = tell
        self._bases: dict[str, str] = {}
        self._stubs: dict[int, Stub] = {}
        self._open: dict[str, list[Node]] = {}
        self._marked: set[str] = set()
        self.data: dict[str, bytes] = {}
        self.files: set[str] = set()
        self.unread: list[str] = []
        self.broken: set[ResourceKey] = set()
        self.kept_files: list[KeptFile] = []
        self.counts: dict[str, int] = {}
        self.parsed: dict[str, tuple[str, str]] = {}
        self.base_of: dict[str, str] = {}

    def close(self) -> None:
        """Close the folder of the last file."""
        self._inside.close()

    def has_marks(self, file: str) -> bool:
        """Whether an expression stands anywhere in a file that was read."""
        return file in self._marked

    def given(self, file: str, base: str = "", look: str = "") -> KeptFile | list[Written]:
        """
        The documents of a file of the folder `base`, as they were read before or as they are.

        `look` is how the file looked before anybody read it; empty where nobody knows.
        """
        self._bases[file] = base
        if file in self._buffers:
            look = ""
        kept = self._kept(file, look)
        if kept is not None:
            return kept
        if self._cache is not None and file not in self.data:
            # It cannot be read, which is told.
            return []
        nodes = self._implied(self.nodes(file, base))
        self.counts[file] = len(nodes)
        # A base's documents are nothing that the environment's own tree says.
        return [Written(file, node, None if base else node) for node in nodes]

    def nodes(self, file: str, base: str = "") -> list[Node]:
        """The documents of a file as they are written; its errors are reported."""
        data = self.data.get(file)
        if data is None:
            data = self._read(file, base)
            if data is None:
                return []
        return self._parse(file, data)

    def sound(self, file: str, base: str) -> list[Node] | None:
        """The same; None where the file has an error."""
        nodes = self.nodes(file, base)
        return None if file in self.unread else nodes

    # What is kept

    def stubs(self, kept: KeptFile) -> list[Written]:
        """Nodes that stand for the documents of a kept file, for overlays to look at."""
        base = self._bases[kept.path]
        written = []
        for number, document in enumerate(kept.documents):
            node = standing_for(document.header)
            self._stubs[id(node)] = Stub(kept, number, node)
            written.append(Written(kept.path, node, None if base else node))
        return written

    def stub(self, written: Written) -> Stub | None:
        """The kept document that a node stands for, if it does."""
        return self._stubs.get(id(written.node))

    def lay_open(self, kept: KeptFile, number: int) -> Written | None:
        """A kept document with all its nodes; None: its file has changed, which is reported."""
        nodes = self._laid_open(kept)
        if number >= len(nodes):
            return None
        return Written(kept.path, nodes[number], None if self._bases[kept.path] else nodes[number])

    def _laid_open(self, kept: KeptFile) -> list[Node]:
        known = self._open.get(kept.path)
        if known is None:
            known = self._open[kept.path] = self._implied(self._parsed_again(kept))
        return known

    def _parsed_again(self, kept: KeptFile) -> list[Node]:
        file = kept.path
        data = self.data.get(file)
        if data is None:
            data = self._read(file, self._bases[file])
            if data is None:
                return []
        if hashlib.sha256(data).hexdigest() != kept.sha256:
            self._tell(
                finding(
                    "file-changed",
                    file,
                    "The file changed while the configuration was read.",
                    "Try again when no program writes to it.",
                )
            )
            self.unread.append(file)
            return []
        self.parsed[file] = (kept.sha256, kept.look)
        return self._parse(file, data)

    def _kept(self, file: str, look: str) -> KeptFile | None:
        if self._cache is None:
            return None
        # Asked before anything else: an editor ends a reading here that it has no use for.
        kept = None if self._buffers.get(file) is not None else self._cache.by_look(file, look)
        if kept is None:
            data = self._read(file, self._bases[file])
            if data is None:
                return None
            sha256 = hashlib.sha256(data).hexdigest()
            self.parsed[file] = (sha256, look)
            kept = self._cache.by_content(file, look, sha256)
        if kept is None:
            return None
        try:
            kept.documents  # noqa: B018 -- decodes them, which shows whether they are of use
        except ValueError:
            self._cache.drop(file)
            return None
        self.files.add(file)
        self.kept_files.append(kept)
        return kept

    # What is read

    def _read(self, file: str, base: str) -> bytes | None:
        unsaved = self._buffers.get(file)
        inside = None if base else self._inside
        data = read_file(self._root, file, base=base, inside=inside) if unsaved is None else unsaved
        if isinstance(data, Finding):
            self._tell(data)
            self.unread.append(file)
            return None
        self.files.add(file)
        self.data[file] = data
        self.base_of[file] = base
        if _MARK in data:
            self._marked.add(file)
        return data

    def _parse(self, file: str, data: bytes) -> list[Node]:
        from fleetform.spec.syntax import read_documents

        nodes, findings = read_documents(data, file)
        for told in findings:
            self._tell(told)
        if findings:
            # Told of the file and not of a document, so no reading would tell it again.
            self.parsed.pop(file, None)
        if any(told.level is Level.ERROR for told in findings):
            self.unread.append(file)
            for name in _NAME_LINE.findall(data):
                self.broken.update(any_kind(name.decode()))
        return nodes

    @staticmethod
    def _implied(nodes: Iterable[Node]) -> list[Node]:
        return [one for node in nodes for one in implied(node)]

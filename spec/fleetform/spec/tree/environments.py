"""
`environment.yaml` of a tree and of its bases: whose resources these are, and what they inherit.

Only an error in this file stops everything: without the environment, its folders and its patches, a plan could
remove what belongs to another environment, or run what is written nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetform.spec.desired import FILE_NAME, Environment, Rules
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.nodes import Node, plain
from fleetform.spec.overlay.documents import Layer, Mistake, Patch, Written
from fleetform.spec.overlay.layers import overlay, read_entry
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.tree.addresses import NO_ADDRESSES
from fleetform.spec.tree.addresses import check as check_addresses
from fleetform.spec.tree.addresses import read as read_addresses
from fleetform.spec.tree.cache import ENVIRONMENT_UID, Given, KeptFile
from fleetform.spec.tree.findings import place
from fleetform.spec.tree.sources import Sources
from fleetform.spec.tree.walk import finding, is_file, is_folder

if TYPE_CHECKING:
    from fleetform.spec.environment import EnvironmentDocument
    from fleetform.spec.references import Catalogue
__all__ = ["Bases", "Environments", "Folder", "Parse", "ReadNodes", "overlaid"]


# Find the folders that an environment is made of, its own, its base and the base's base, and overlay them.
#
# A branch that was not reviewed may name anything as its base. So links are followed before a folder
# is judged, and it has to lie in the same repository: what lies elsewhere is in no commit of this one.
# Without git the folder above the environment's is the bound.
#
# Most documents are stood for by a reading. Overlays see of those the few scalars by which they
# choose. Whatever they change is laid open, and they are asked once more.

# Whoever reads a tree has to read all of these; the deepest that anybody has shown is three.
BASES_MAX = 8

Parse: TypeAlias = "Callable[[str], tuple[Node, EnvironmentDocument] | None]"
"""Reads `environment.yaml` of a folder by its path; errors are reported elsewhere."""

ReadNodes = Callable[[str, str], Sequence[Node] | None]
"""Reads a file of YAML in a folder; None for one that cannot be read, which is reported elsewhere."""


@dataclass(frozen=True, slots=True)
class Folder:
    """
    One folder of documents.

    Attributes:
        path: Relative to the environment's own, which is empty: `../base`.
        document: What its `environment.yaml` says; a base may have none.
        patches: In order.
        patch_files: What patches name as files; not documents of the folder.
    """

    path: str
    document: EnvironmentDocument | None = None
    patches: tuple[Patch, ...] = ()
    patch_files: frozenset[str] = frozenset()

    def below(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    def has(self, file: str) -> bool:
        """Whether a file lies in this folder and no base above."""
        return file.startswith(f"{self.path}/") if self.path else not file.startswith("../")


@dataclass(slots=True)
class Bases:
    """
    Reads an environment's folders.

    Attributes:
        folders: From the environment's own to the lowest base.
        mistakes: What is wrong; then the environment cannot be used, since nobody can tell what
            it declares.
    """

    root: Path
    parse: Parse
    read_nodes: ReadNodes
    folders: list[Folder] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    is_whole: bool = True
    _real: list[str] = field(default_factory=list)

    def read(self, node: Node, document: EnvironmentDocument) -> None:
        """Follow `extends` from the environment's own document."""
        self._real = [os.path.realpath(self.root)]
        path = ""
        while True:
            self.folders.append(self._folder(path, node, document))
            if document.extends is None:
                return
            problem = self._enter(document.extends)
            if problem is not None:
                self._mistake(self._file(path), node, problem)
                return
            path = os.path.relpath(self._real[-1], self._real[0]).replace(os.sep, "/")
            if not self._has_environment(path):
                self.folders.append(Folder(path))
                return
            parsed = self.parse(self._file(path))
            if parsed is None:
                self.folders.append(Folder(path))
                self.is_whole = False
                return
            node, document = parsed

    @property
    def values(self) -> Mapping[str, Any]:
        """What `${{ values.x }}` stands for; the upper folder wins."""
        merged: dict[str, Any] = {}
        for folder in reversed(self.folders):
            if folder.document is not None:
                merged.update(folder.document.values or {})
        return merged

    @property
    def rules(self) -> Mapping[str, Any]:
        """What is allowed without asking twice; the upper folder wins, rule by rule."""
        merged: dict[str, Any] = {}
        for folder in reversed(self.folders):
            if folder.document is not None and folder.document.rules is not None:
                merged.update(folder.document.rules.to_canonical())
        return merged

    def _file(self, path: str) -> str:
        return f"{path}/{FILE_NAME}" if path else FILE_NAME

    def _has_environment(self, path: str) -> bool:
        return is_file(self.root / path / FILE_NAME)

    def _mistake(self, file: str, node: Node, problem: Problem) -> None:
        self.mistakes.append(Mistake(file, node, problem))

    # Which folder

    def _enter(self, named: str) -> Problem | None:
        """Go to the base that is named, or say why not."""
        if named.startswith(("/", "~")) or "\\" in named or "\0" in named:
            return _bad_base(
                f"{shown(named)} is not a relative path, and would differ between machines.",
                "Write it from here, with slashes: `../base`.",
            )
        real = os.path.realpath(f"{self._real[-1]}/{named}")
        bound, is_git = _bound(self._real[0])
        if not _is_below(real, bound) or (is_git and _bound(real)[0] != bound):
            return _bad_base(*_outside(named, is_git=is_git))
        if not is_folder(Path(real)):
            return _bad_base(
                f"There is no folder {shown(named)} here.",
                "`extends` names a folder, relative to the one of this file.",
            )
        problem = self._overlap(real, named)
        if problem is None:
            self._real.append(real)
        return problem

    def _overlap(self, real: str, named: str) -> Problem | None:
        if real in self._real:
            steps = [*self._real[self._real.index(real) :], real]
            path = " → ".join(Path(step).name for step in steps)
            return _bad_base(f"The environments extend each other: {path}.", "Break the circle.")
        for other in self._real:
            if _is_below(real, other) or _is_below(other, real):
                return _bad_base(
                    f"{shown(named)} and {shown(Path(other).name)} contain each other, so documents would belong to both.",
                    "Put the base next to the environments that extend it.",
                )
        if len(self._real) > BASES_MAX:
            return _bad_base(
                f"More than {BASES_MAX} bases extend each other.", "Join some of them."
            )
        return None

    # Its patches

    def _folder(self, path: str, node: Node, document: EnvironmentDocument) -> Folder:
        file = self._file(path)
        patches: list[Patch] = []
        files: set[str] = set()
        for number, entry in enumerate(document.patches or ()):
            content = None
            if entry.file is not None:
                content_file = os.path.normpath(f"{path or '.'}/{entry.file}")
                content = self._content(path, content_file, entry.file, (file, node, number))
                files.add(content_file)
                if content is None:
                    continue
                patch, wrong = read_entry(
                    file, node, number, content_file=content_file, content=content
                )
            else:
                patch, wrong = read_entry(file, node, number)
            self.mistakes.extend(wrong)
            patches.extend([patch] if patch is not None else [])
        return Folder(path, document, tuple(patches), frozenset(files))

    def _content(
        self, folder: str, file: str, named: str, entry: tuple[str, Node, int]
    ) -> Node | None:
        """The one document of a file that a patch names."""
        environment, node, number = entry
        where = ("patches", number, "file")
        real_folder = self._real[-1]
        real = "" if "\0" in named else os.path.realpath(f"{real_folder}/{named}")
        if named.startswith(("/", "~")) or not _is_below(real, real_folder):
            self._mistake(
                environment,
                node,
                Problem(
                    "file-outside",
                    where,
                    f"{shown(named)} is outside of the configuration.",
                    "Put the patch inside it.",
                ),
            )
            return None
        if not is_file(Path(real)):
            self._mistake(
                environment,
                node,
                Problem(
                    "file-missing",
                    where,
                    f"{shown(named)} does not exist.",
                    "Paths are relative to the folder of this file.",
                ),
            )
            return None
        nodes = self.read_nodes(file, folder)
        if nodes is None:
            self.is_whole = False
            return None
        if len(nodes) == 1:
            return nodes[0]
        self._mistake(
            environment,
            node,
            Problem(
                "bad-patch",
                where,
                f"{shown(named)} has {len(nodes)} documents, and a patch is one.",
                "Give each a file and an entry of its own.",
            ),
        )
        return None


def _bad_base(detail: str, advice: str) -> Problem:
    return Problem("bad-base", ("extends",), detail, advice)


def _outside(named: str, *, is_git: bool) -> tuple[str, str]:
    if is_git:
        return (
            f"{shown(named)} is outside of this repository, so no commit contains it.",
            "Put the base into the repository of the environments that extend it.",
        )
    return (
        f"{shown(named)} is farther away than a neighbouring folder.",
        "Put the base next to the environment, or use a git repository, in which it may be anywhere.",
    )


def _bound(real: str) -> tuple[str, bool]:
    """The repository that a folder lies in, or the folder above, and whether it is the former."""
    folder = Path(real)
    for above in (folder, *folder.parents):
        if os.path.lexists(above / ".git"):
            return str(above), True
    return str(folder.parent), False


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + os.sep)


def overlaid(
    sources: Sources, folders: Sequence[Folder], given: Sequence[Sequence[Given]], touched: set[int]
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents that all folders come to, those that are touched with all their nodes.

    Args:
        sources: Where they are written.
        folders: The lowest base first.
        given: For each folder, its files.
        touched: Takes the ids of nodes that are not as their file has them.
    """
    layers = [
        Layer(tuple(_documents(sources, files)), folder.patches)
        for files, folder in zip(given, folders, strict=True)
    ]
    while True:
        documents, mistakes = overlay(layers, is_complete=not sources.unread)
        untouched = {id(one) for one in documents}
        wrong = {id(mistake.node) for mistake in mistakes}
        opened = [_opened(sources, layer, untouched, wrong) for layer in layers]
        if all(one is two for one, two in zip(opened, layers, strict=True)):
            known = {id(one) for layer in layers for one in layer.documents}
            touched.update(
                id(one.node) for one in documents if id(one) not in known or one.is_spoiled
            )
            return documents, mistakes
        layers = opened


def _documents(sources: Sources, files: Iterable[Given]) -> Iterator[Written]:
    for file in files:
        yield from sources.stubs(file) if isinstance(file, KeptFile) else file


def _opened(sources: Sources, layer: Layer, untouched: set[int], wrong: set[int]) -> Layer:
    """The layer with nodes where an overlay did more than to look; itself where it did not."""
    documents = []
    is_opened = False
    for one in layer.documents:
        stub = sources.stub(one)
        if stub is None or (id(one) in untouched and id(one.node) not in wrong):
            documents.append(one)
            continue
        # What has changed meanwhile is left out: nobody can tell what it declares.
        found = sources.lay_open(stub.file, stub.number)
        documents.extend([found] if found else [])
        is_opened = True
    return Layer(tuple(documents), layer.patches) if is_opened else layer


ADDRESS = "environment"


class Environments:
    """
    Reads them.

    Args:
        root: The environment's own folder.
        unsaved: Files that stand for what lies on disk.
        read_nodes: The documents of a file, and the base that it lies in; None: it has errors,
            which are told.
        tell: Takes what is wrong.

    Attributes:
        folders: The environment's own, its base, and so on; known after `read`.
        values: What `${{ values.x }}` stands for.
        own: Which environment it is by its own document alone, whatever state its bases are in; known
            after `read`, None for one that is abstract.
        addresses: What it says of single resources, known after `read`; right only if
            `check_addresses` says so.
    """

    def __init__(
        self,
        root: Path,
        unsaved: Collection[str],
        read_nodes: ReadNodes,
        tell: Callable[[Finding], None],
    ) -> None:
        self._root = root
        self._unsaved = unsaved
        self._read_nodes = read_nodes
        self._tell = tell
        self.folders = [Folder("")]
        self.values: Mapping[str, Any] = {}
        self.addresses = NO_ADDRESSES
        self.own: Environment | None = None
        self._own: Node | None = None

    def read(self) -> Environment | None:
        """The environment with what its bases add; None where it cannot be used."""
        parsed = self._parse_own()
        if parsed is None:
            return None
        node, document = parsed
        self._own = node
        self.addresses = read_addresses(document)
        bases = Bases(self._root, self._parse, self._read_nodes)
        bases.read(node, document)
        self.folders = bases.folders
        self.values = {**bases.values, ENVIRONMENT_UID: document.uid or ""}
        for mistake in bases.mistakes:
            self._tell(place(mistake.problem, mistake.node, mistake.file, ADDRESS))
        is_usable = bases.is_whole and not bases.mistakes and not self._is_abstract(node, document)
        return _environment(document, bases.rules) if is_usable else None

    def check_addresses(self, catalogue: Catalogue) -> bool:
        """Tell what is wrong with them; False if anything stops the environment."""
        problems = list(check_addresses(self.addresses, catalogue))
        for problem in problems:
            assert self._own is not None, "what it says was read from it"
            self._tell(place(problem, self._own, FILE_NAME, ADDRESS))
        return all(problem.level is not Level.ERROR for problem in problems)

    def read_alone(self) -> Environment | None:
        """
        The environment by its own document: whose the tree is, whatever state its base is in.

        Its rules are those that it says itself.
        """
        parsed = self._parse_own()
        return None if parsed is None or self._is_abstract(*parsed) else self.own

    def _parse_own(self) -> tuple[Node, EnvironmentDocument] | None:
        if FILE_NAME in self._unsaved or is_file(self._root / FILE_NAME):
            parsed = self._parse(FILE_NAME)
            if parsed is not None and parsed[1].uid is not None:
                rules = parsed[1].rules
                self.own = _environment(parsed[1], rules.to_canonical() if rules else {})
            return parsed
        self._tell(
            finding(
                "missing-environment",
                FILE_NAME,
                f"There is no `{FILE_NAME}` in this folder, so it is not an environment.",
                "Run `fleetform init`, or go to the folder that has one.",
            )
        )
        return None

    def _parse(self, file: str) -> tuple[Node, EnvironmentDocument] | None:
        node = self._node(file)
        return None if node is None else self._validate(file, node)

    def _node(self, file: str) -> Node | None:
        nodes = self._read_nodes(file, file.removesuffix(FILE_NAME).rstrip("/"))
        if nodes is None:
            return None
        if len(nodes) == 1:
            return nodes[0]
        self._tell(
            finding(
                "missing-environment",
                file,
                f"`{FILE_NAME}` has {len(nodes)} documents, but must have exactly one.",
                "Move the others into files of their own." if nodes else "Run `fleetform init`.",
            )
        )
        return None

    def _validate(self, file: str, node: Node) -> tuple[Node, EnvironmentDocument] | None:
        from pydantic import ValidationError

        from fleetform.spec.environment import EnvironmentDocument

        try:
            return node, EnvironmentDocument.model_validate(plain(node))
        except ValidationError as exc:
            from fleetform.spec.tree.validation_errors import complain

            for problem in complain(exc, EnvironmentDocument, ADDRESS):
                self._tell(place(problem, node, file, ADDRESS))
            return None

    def _is_abstract(self, node: Node, document: EnvironmentDocument) -> bool:
        if document.uid is not None:
            return False
        problem = Problem(
            "abstract-environment",
            ("abstract",),
            "Others extend it. It has no uid, so it has no plans and no resources of its own.",
            level=Level.NOTE,
            at_key=True,
        )
        self._tell(place(problem, node, FILE_NAME, ADDRESS))
        return True


def _environment(document: EnvironmentDocument, rules: Mapping[str, Any]) -> Environment:
    assert document.uid is not None, "it is not abstract"
    grants = document.grants
    grants_root = grants is not None and bool(grants.root)
    return Environment(document.name, document.uid, Rules.of(rules), grants_root)

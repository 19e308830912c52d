"""
`environment.yaml` of a tree and of its bases: whose resources these are, and what they inherit.

Only this file stops everything: who does not know whose a tree is, which folders belong to it or
what its patches change could remove what belongs to another, or run what nobody wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.spec.desired import Environment, Rules
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.identity import FILE_NAME, plain_environment
from fleetform.spec.nodes import Node, plain
from fleetform.spec.tree.addresses import NO_ADDRESSES
from fleetform.spec.tree.addresses import check as check_addresses
from fleetform.spec.tree.addresses import read as read_addresses
from fleetform.spec.tree.bases import Bases, Folder, ReadNodes
from fleetform.spec.tree.cache import ENVIRONMENT_UID
from fleetform.spec.tree.findings import place
from fleetform.spec.tree.safe_open import is_file
from fleetform.spec.tree.walk import finding

if TYPE_CHECKING:
    from fleetform.spec.environment import EnvironmentDocument
    from fleetform.spec.references import Catalogue

__all__ = ["Environments"]

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
        self._own: Node | None = None

    def read(self) -> Environment | None:
        """The environment with what its bases add; None where it cannot be used."""
        node = self._own_node()
        # Most say no more than whose they are, and importing the models takes longer than
        # loading a small tree.
        environment = None if node is None else _standing_alone(plain(node))
        parsed = None if node is None or environment else self._validate(FILE_NAME, node)
        if parsed is None:
            if environment is not None:
                self.values = {ENVIRONMENT_UID: environment.uid}
            return environment
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
        node = self._own_node()
        parsed = None if node is None else self._validate(FILE_NAME, node)
        if parsed is None or self._is_abstract(*parsed):
            return None
        rules = parsed[1].rules
        return _environment(parsed[1], rules.to_canonical() if rules else {})

    def _own_node(self) -> Node | None:
        if FILE_NAME in self._unsaved or is_file(self._root / FILE_NAME):
            return self._node(FILE_NAME)
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


def _standing_alone(value: Any) -> Environment | None:
    """An environment that inherits nothing, says no more than it has to, and is right."""
    is_alone = isinstance(value, dict) and value.keys() <= {"type", "name", "uid", "rules"}
    return plain_environment(value) if is_alone else None


def _environment(document: EnvironmentDocument, rules: Mapping[str, Any]) -> Environment:
    assert document.uid is not None, "it is not abstract"
    return Environment(document.name, document.uid, Rules.of(rules))

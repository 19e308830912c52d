"""
What the passes after reading need of one document: no node and no model of it.

A document that was read a moment ago and one that comes from the cache are the same value here,
so that nothing behind can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level, Place, Problem
from fleetform.spec.references import Reference

__all__ = ["ENVIRONMENT_UID", "Conditions", "FilesAnswer", "Outcome", "Row"]

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

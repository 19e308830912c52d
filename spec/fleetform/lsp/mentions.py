"""
What one file declares and what it refers to, with the place of each name.

A file is read as far as it goes: in the middle of an edit it is rarely sound, and an editor is
asked about names all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fleetform.lsp.expressions import expressions
from fleetform.lsp.reference_fields import Spelling, Target, named_by
from fleetform.lsp.text import Extent, Text
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level
from fleetform.spec.interpolate import MARK
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import split_element
from fleetform.spec.nodes import MappingNode, Node, ScalarNode
from fleetform.spec.syntax import read_stream
from fleetform.spec.tree.sources import implied

__all__ = ["Declaration", "FileIndex", "Mention", "index_file"]

_NEXT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
# What may be a name of any kind; those of secrets are the widest.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_DESCRIPTION_MAX = 200


class Mention(NamedTuple):
    """
    A place where a resource's name stands.

    Attributes:
        key: The resource; of an element, its document's.
        extent: The name alone, without quotes, mount paths and brackets.
        is_declaration: It stands behind `name:`.
        is_exact: The source has the name literally at `extent`. Where it is spelled with
            escapes, taken from the type, or not at its old place any more, one can go there and
            not edit it.
    """

    key: ResourceKey
    extent: Extent
    is_declaration: bool = False
    is_exact: bool = True


class Declaration(NamedTuple):
    """A document that declares a resource: the place of its name, and of the whole of it."""

    key: ResourceKey
    type: str
    name: Extent
    whole: Extent
    description: str = ""


class FileIndex(NamedTuple):
    """
    Attributes:
        mentions: In order of the text.
        is_sound: No error lies in the file's YAML, so nothing of it is missing here.
    """

    text: Text
    mentions: tuple[Mention, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    is_sound: bool = True


def index_file(text: Text, file: str) -> FileIndex:
    """Read one file: any text."""
    documents, findings = read_stream(text.data, file)
    mentions: list[Mention] = []
    declarations: list[Declaration] = []
    for root in (one for document in documents for one in implied(document.root)):
        if not isinstance(root, MappingNode):
            continue
        declared = _declaration(root, text)
        if declared is not None:
            declarations.append(declared)
            is_named = root.get("name") is not None
            exact = is_named and text.slice(declared.name) == declared.key.name
            mentions.append(Mention(declared.key, declared.name, True, exact))
        mentions.extend(_references(root, text))
    return FileIndex(
        text,
        tuple(sorted(set(mentions), key=lambda mention: mention.extent)),
        tuple(declarations),
        all(finding.level is not Level.ERROR for finding in findings),
    )


def kind_of(root: MappingNode) -> str:
    """The kind that a document's `type:` says; empty when there is none such."""
    type_name = _raw(root, "type")
    if type_name == "environment":
        return type_name
    return KINDS[type_name].name if type_name in KINDS else ""


def document_extent(start: int, text: Text) -> Extent:
    """The document that begins at `start`: up to the next one, or to the end."""
    following = _NEXT.search(text.source, start)
    end = following.start() if following else len(text.source)
    return Extent(start, start + len(text.source[start:end].rstrip()))


def _declaration(root: MappingNode, text: Text) -> Declaration | None:
    kind, name = kind_of(root), root.get("name")
    if kind == "backend" and name is None:
        # Without a name of its own it is called by its type.
        name = root.get("type")
    if (
        kind in ("", "environment")
        or not isinstance(name, ScalarNode)
        or not isinstance(name.value, str)
    ):
        return None
    if not name.raw:
        return None
    return Declaration(
        ResourceKey(kind, name.raw),
        _raw(root, "type"),
        _name_extent(name, name.raw, 0, text)[0],
        document_extent(text.offset_of(root.place), text),
        _raw(root, "description")[:_DESCRIPTION_MAX],
    )


def _raw(root: MappingNode, field: str) -> str:
    node = root.get(field)
    return node.raw if isinstance(node, ScalarNode) else ""


def _references(root: MappingNode, text: Text) -> Iterator[Mention]:
    for node, target in named_by(root, kind_of(root)):
        found = _named(node, target)
        if found is not None:
            key, at = found
            extent, is_exact = _name_extent(node, key.name, at, text)
            yield Mention(key, extent, is_exact=is_exact)
    if MARK in text.source:
        yield from _secrets(root, text)


def _secrets(root: Node, text: Text) -> Iterator[Mention]:
    for expression in expressions(root, text):
        if expression.namespace == "secrets":
            yield Mention(ResourceKey("secret", expression.key), expression.key_extent)


def _named(node: ScalarNode, target: Target) -> tuple[ResourceKey, int] | None:
    """What a text names, and where in it the name begins; None when it names nothing."""
    raw, kind, at = node.raw, target.kind, 0
    if target.spelling is Spelling.MOUNT:
        raw = raw.partition(":")[0]
    elif target.spelling is Spelling.ELEMENT:
        raw = split_element(raw)[0]
    elif target.spelling is Spelling.ADDRESS:
        kind, slash, raw = raw.partition("/")
        at = len(kind) + len(slash)
    return (ResourceKey(kind, raw), at) if _NAME.fullmatch(raw) else None


def _name_extent(node: ScalarNode, name: str, at: int, text: Text) -> tuple[Extent, bool]:
    """Where `name` stands that begins `at` characters into a scalar, and whether it really does."""
    start = text.offset_of(node.place) + at + (1 if node.style in {"'", '"'} else 0)
    extent = Extent(start, start + len(name))
    if text.slice(extent) == name:
        return extent, True
    return text.extent_of(node.place), False

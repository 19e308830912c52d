"""
What one file declares and what it refers to, with the place of each name.

A file is read as far as it goes: in the middle of an edit it is rarely sound, and an editor is
asked about names all the same.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fleetform.lsp.text import Extent, Text
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level
from fleetform.spec.interpolate import MARK
from fleetform.spec.kinds import KINDS, RESOURCES
from fleetform.spec.names import split_element
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, scalars
from fleetform.spec.syntax import read_stream
from fleetform.spec.tree.sources import implied

__all__ = [
    "ROWS",
    "Declaration",
    "Expression",
    "FileIndex",
    "Mention",
    "Spelling",
    "Target",
    "expressions",
    "index_file",
    "named_by",
    "target_at",
]

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


# The table of fields that name another resource.
# One row a field: where it stands, what kind it names, and how the name is spelled there. All
# that follows names from document to document reads this table and nothing else, so that a new
# field is one row here.
# A path is dotted; `[]` behind a step stands for a list's items, or for the value itself where
# one may stand alone: `fleets[]` is `fleets: local` and `fleets: [local]`.
class Spelling(enum.Enum):
    """How a name stands in its text."""

    NAME = "name"
    """By itself: `local`."""
    MOUNT = "mount"
    """In front of a colon and a path: `data:/mnt`. What begins with a slash names nothing."""
    ELEMENT = "element"
    """With an element in brackets, if need be: `sweep[lr=0.1]`."""
    ADDRESS = "address"
    """With its kind in front: `run/train`."""


class Target(NamedTuple):
    """
    What a field names.

    Attributes:
        kind: Of the resource; of `Spelling.ADDRESS` empty, since the text says it.
        spelling: How.
    """

    kind: str
    spelling: Spelling = Spelling.NAME


_PLACING = {
    "fleets[].name": Target("fleet"),
    "instances[].fleet.name": Target("fleet"),
}
# What may be written besides the canonical form, which `kinds` has in its rows.
_SHORT: dict[str, dict[str, Target]] = {
    # A pattern such as `fleet/gpu-*` names nothing in particular.
    "environment": {"patches[].target": Target("", Spelling.ADDRESS)},
    "project": {"members[]": Target("user")},
    "profile": _PLACING,
    "run": {
        **_PLACING,
        "volumes[]": Target("volume", Spelling.MOUNT),
        "gateway.name": Target("gateway"),
        "profile": Target("profile"),
        "depends_on[]": Target("run", Spelling.ELEMENT),
        "depends_on[].run": Target("run", Spelling.ELEMENT),
        "depends_on.runs[]": Target("run", Spelling.ELEMENT),
    },
}


def _written(path: str) -> str:
    """A path of a canonical document, in which a list or one of its items may stand anywhere."""
    return ".".join(f"{step}[]" for step in path.split("."))


def _target(kind: str) -> Target:
    return Target(kind, Spelling.ELEMENT if kind == "run" else Spelling.NAME)


ROWS: Mapping[str, Mapping[str, Target]] = {
    kind: {
        **{
            _written(path): _target(target)
            for path, target in (RESOURCES[kind].refers if kind in RESOURCES else {}).items()
        },
        **_SHORT.get(kind, {}),
    }
    for kind in (*_SHORT, *RESOURCES)
}
"""By kind, then by path."""


def named_by(root: Node, kind: str) -> Iterator[tuple[ScalarNode, Target]]:
    """Each text of a document that names something, with what it names."""
    for path, target in ROWS.get(kind, {}).items():
        for node in _resolve(root, _steps(path)):
            if isinstance(node, ScalarNode) and node.raw:
                yield node, target


def target_at(kind: str, path: tuple[str | int, ...]) -> Target | None:
    """What a text at this place of a document would name."""
    names = [step for step in path if isinstance(step, str)]
    for written, target in ROWS.get(kind, {}).items():
        if [step.removesuffix("[]") for step in _steps(written)] == names:
            return target
    return None


@functools.cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _resolve(node: Node, steps: tuple[str, ...]) -> Iterator[Node]:
    if not steps:
        yield node
        return
    step, *rest = steps
    found = node.get(step.removesuffix("[]")) if isinstance(node, MappingNode) else None
    if found is None:
        return
    if step.endswith("[]") and isinstance(found, SequenceNode):
        for item in found.items:
            yield from _resolve(item, tuple(rest))
    else:
        yield from _resolve(found, tuple(rest))


# Where in a text its `${{ … }}` stand.
# `interpolate` reads the values of texts, in which YAML's quotes, escapes and folded lines are
# gone; an editor needs the places. So the texts say which expressions there are, and the source
# is searched for the same ones in the same order. Where the two disagree (an expression spelled
# with escapes) there is none to show, and nothing is guessed.
_EXPRESSION = re.compile(
    r"(?P<escape>\$?)\$\{\{(?:\s*(?P<space>[A-Za-z_]+)\.(?P<key>[A-Za-z_][A-Za-z0-9_-]*)\s*\}\})?",
    re.ASCII,
)


class Expression(NamedTuple):
    """One `${{ namespace.key }}`: the whole of it, and its key alone."""

    namespace: str
    key: str
    whole: Extent
    key_extent: Extent


def expressions(root: Node, text: Text) -> Iterator[Expression]:
    """Every expression of a document, in its order; an anchored text is reported once."""
    seen: set[int] = set()
    for _, scalar in scalars(root):
        start = text.offset_of(scalar.place) if MARK in scalar.raw else -1
        if start >= 0 and start not in seen:
            seen.add(start)
            yield from _in_scalar(scalar, text, start)


def _in_scalar(scalar: ScalarNode, text: Text, start: int) -> Iterator[Expression]:
    meant = _EXPRESSION.finditer(scalar.raw)
    written = _EXPRESSION.finditer(text.source, start)
    for one in meant:
        found = next(written, None)
        if found is None or found.groups() != one.groups():
            return
        if one["key"] and not one["escape"]:
            yield Expression(
                one["space"],
                one["key"],
                Extent(found.start() + len(found["escape"]), found.end()),
                Extent(found.start("key"), found.end("key")),
            )

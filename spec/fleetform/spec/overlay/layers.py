"""
Lay the layers of an environment over each other, from its lowest base to the profiles.

Patches are applied in the order they are written: each sees what those before it left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import nearest
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.overlay import operations
from fleetform.spec.overlay.documents import (
    WORK_MAX,
    Layer,
    Mistake,
    Patch,
    Written,
    foreign,
    size_of,
)
from fleetform.spec.overlay.merge import merge_document
from fleetform.spec.overlay.operations import parse_operations
from fleetform.spec.overlay.profiles import with_profiles
from fleetform.spec.quantities.ranges import shown

__all__ = [
    "Address",
    "Index",
    "address",
    "matches",
    "matches_nothing",
    "overlay",
    "patched",
    "read_entry",
]


# Which documents a patch means: `run/train`, `fleet/gpu-*`, `task/*`.

# What makes a pattern of a name.
_PATTERN = frozenset("*?[")


class Address(NamedTuple):
    """What a document says it is: `run`, `task`, `train`."""

    kind: str
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def address(node: Node) -> Address | None:
    """None for a document that does not say which resource it declares."""
    if not isinstance(node, MappingNode):
        return None
    said = [node.get("type"), node.get("name")]
    type_name, name = (part.value if isinstance(part, ScalarNode) else None for part in said)
    if not isinstance(type_name, str) or type_name not in KINDS:
        return None
    # A backend may leave its name out, and is then called by its type.
    name = type_name if said[1] is None else name
    return Address(KINDS[type_name].name, type_name, name) if isinstance(name, str) else None


class Index:
    """Addresses of documents, found by target; None for a document that has none."""

    def __init__(self, addresses: Sequence[Address | None]) -> None:
        self._addresses = addresses
        self._exact: dict[str, list[int]] = {}
        for number, one in enumerate(addresses):
            if one is not None:
                for kind in {one.kind, one.type}:
                    self._exact.setdefault(f"{kind}/{one.name}", []).append(number)

    def matching(self, target: str) -> list[int]:
        """Positions of the documents that a target means, in order."""
        # Nearly all targets are names, and a thousand of them would be compared ten million times.
        if not _PATTERN.intersection(target):
            return self._exact.get(target, [])
        return [
            number
            for number, one in enumerate(self._addresses)
            if one is not None and matches(target, one)
        ]


def matches(target: str, one: Address) -> bool:
    """Whether a target means a document; kinds are named by kind or by `type:`."""
    kind, _, name = target.partition("/")
    is_kind = fnmatchcase(one.kind, kind) or fnmatchcase(one.type, kind)
    return is_kind and fnmatchcase(one.name, name)


def matches_nothing(target: str, known: Iterable[Address]) -> Problem:
    """Why a target without a document is a mistake, with the one that was probably meant."""
    names = sorted({str(one) for one in known})
    close = nearest(target, names)
    if close:
        advice = f"Did you mean `{close}`?"
    elif names:
        advice = "There is " + ", ".join(f"`{name}`" for name in names[:10])
        advice += ", …" if len(names) > 10 else "."
    else:
        advice = "Kind and name are those of a document: `run/train`."
    return Problem(
        "patch-matches-nothing",
        ("target",),
        f"No document matches {shown(target)}, so the patch has no effect.",
        advice,
    )


def read_entry(
    file: str, node: Node, number: int, *, content_file: str = "", content: Node | None = None
) -> tuple[Patch | None, list[Mistake]]:
    """
    The patch at position `number` of an environment's document, which its model accepts.

    Args:
        file: Of the environment's document.
        node: That document.
        number: From 0.
        content_file: The file that the entry names for its steps.
        content: What that holds.

    Returns:
        None for one that cannot be carried out, and why.
    """
    entry = _entry(node, number)
    patch = Patch(file, node, number, _text(entry, "target"), file, node)
    if content is not None:
        return _with_content(replace(patch, content_file=content_file, content=content), content)
    for name in ("merge", "patch"):
        said = entry.get(name)
        if said is not None:
            path = ("patches", number, name)
            return _with_content(replace(patch, content_path=path), said)
    return replace(patch, is_deletion=True), []


def _with_content(patch: Patch, said: Node) -> tuple[Patch | None, list[Mistake]]:
    """What a mapping merges, and what a list of steps does."""
    lent = foreign(said, patch.content_file)
    if isinstance(lent, MappingNode):
        return replace(patch, merge=lent), []
    operations, problems = parse_operations(lent)
    if not problems:
        return replace(patch, operations=tuple(operations)), []
    mistakes = [
        Mistake(patch.content_file, patch.content, _below(problem, patch.content_path))
        for problem in problems
    ]
    return None, mistakes


def _below(problem: Problem, path: tuple[str | int, ...]) -> Problem:
    return replace(problem, path=(*path, *problem.path))


def _entry(node: Node, number: int) -> MappingNode:
    assert isinstance(node, MappingNode), "its model has read it"
    patches = node.get("patches")
    assert isinstance(patches, SequenceNode), "its model has read it"
    entry = patches.items[number]
    assert isinstance(entry, MappingNode), "its model has read it"
    return entry


def _text(entry: MappingNode, name: str) -> str:
    said = entry.get(name)
    assert isinstance(said, ScalarNode), "its model has read it"
    return str(said.value)


# Whoever has mistaken that many targets has mistaken something else.
_SUGGESTIONS_MAX = 20


def patched(
    documents: Sequence[Written], patches: Sequence[Patch], *, is_complete: bool
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents as the patches leave them, and what is wrong.

    Args:
        documents: In any order, which is kept.
        patches: In order.
        is_complete: Every document is known. If not, a target that nothing matches may be
            one of those that could not be read.
    """
    if not patches:
        return list(documents), []
    kept: list[Written | None] = list(documents)
    addresses = [address(one.node) for one in documents]
    found = Index(addresses)
    mistakes: list[Mistake] = []
    work = 0
    for patch in patches:
        hit = [number for number in found.matching(patch.target) if kept[number] is not None]
        if not hit and is_complete:
            known = addresses if len(mistakes) < _SUGGESTIONS_MAX else ()
            problem = matches_nothing(patch.target, filter(None, known))
            mistakes.append(_in_entry(patch, problem))
        work += len(hit) * _size(patch)
        if work > WORK_MAX:
            mistakes.append(_in_entry(patch, _too_much()))
            break
        for number in hit:
            before = kept[number]
            assert before is not None, "what is left out is not hit"
            kept[number] = _apply(before, patch, mistakes)
    return [one for one in kept if one is not None], mistakes


def _size(patch: Patch) -> int:
    """At most how many values it puts into a document."""
    if patch.merge is not None:
        return size_of(patch.merge)
    steps = sum(size_of(one.value) if one.value is not None else 1 for one in patch.operations)
    return max(1, steps)


def _apply(document: Written, patch: Patch, mistakes: list[Mistake]) -> Written | None:
    if patch.is_deletion:
        return None
    if document.is_spoiled:
        # What a step makes of a document that another step did not fit is nobody's intent.
        return document
    assert isinstance(document.node, MappingNode), "it has an address"
    if patch.merge is not None:
        return replace(document, node=merge_document(document.node, patch.merge))
    node, problem = operations.apply(document.node, patch.operations)
    if problem is None:
        return replace(document, node=node)
    mistakes.append(_in_content(patch, problem, document))
    return document.spoiled()


def _in_entry(patch: Patch, problem: Problem) -> Mistake:
    path = ("patches", patch.number, *problem.path)
    return Mistake(patch.file, patch.node, _at(problem, path), is_general=True)


def _in_content(patch: Patch, problem: Problem, document: Written) -> Mistake:
    where = f"{address(document.node)} ({document.file})"
    told = replace(problem, detail=f"For {where}: {problem.detail}")
    return Mistake(
        patch.content_file, patch.content, _at(told, (*patch.content_path, *problem.path))
    )


def _at(problem: Problem, path: tuple[str | int, ...]) -> Problem:
    return replace(problem, path=path)


def _too_much() -> Problem:
    return Problem(
        "patch-failed",
        ("target",),
        f"With this one, patches put more than {WORK_MAX} values into documents.",
        "Name fewer documents, or write less into each.",
    )


def overlay(
    layers: Sequence[Layer], *, is_complete: bool = True
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents that an environment declares with its bases, and what is wrong.

    Args:
        layers: From the lowest base to the environment itself.
        is_complete: Every document could be read; if not, none is missed.
    """
    documents: list[Written] = []
    mistakes: list[Mistake] = []
    for layer in layers:
        documents = _joined(documents, layer.documents, mistakes)
        documents, wrong = patched(documents, layer.patches, is_complete=is_complete)
        mistakes.extend(wrong)
    documents, wrong = with_profiles(documents, is_complete=is_complete)
    return documents, [*mistakes, *wrong]


def _joined(below: list[Written], own: Sequence[Written], mistakes: list[Mistake]) -> list[Written]:
    """Both layers' documents; one that both declare is a mistake of the upper one."""
    if not below:
        return list(own)
    declared = {found: one for one in below if (found := address(one.node)) is not None}
    by_name = {str(found): one for found, one in declared.items()}
    taken = set()
    kept = []
    for document in own:
        found = address(document.node)
        other = by_name.get(str(found)) if found is not None else None
        if other is None:
            kept.append(document)
            continue
        taken.add(id(other))
        kept.append(document.spoiled())
        mistakes.append(Mistake(document.file, document.node, _declared_below(str(found), other)))
    return [*(one for one in below if id(one) not in taken), *kept]


def _declared_below(name: str, other: Written) -> Problem:
    line = other.node.place.line
    return Problem(
        "declared-in-base",
        ("name",),
        f"The base declares {name} too, in {other.file}:{line}; a resource can be declared only once.",
        f"Patch the base's in `environment.yaml`: `patches: [{{target: {name}, merge: {{…}}}}]`;"
        " or choose another name.",
    )

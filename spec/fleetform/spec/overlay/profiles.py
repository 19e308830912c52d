"""
Profiles: what many runs have in common, said once and merged under each run's own fields.

A run names one, or gets the default one of the tree. A field that the run says itself wins; null
there means: without the profile's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import nearest
from fleetform.spec.nodes import MappingNode, Node, ScalarNode
from fleetform.spec.overlay.documents import WORK_MAX, Mistake, Written, foreign, size_of
from fleetform.spec.overlay.merge import merge_document
from fleetform.spec.quantities.ranges import shown

__all__ = ["FIELD", "TYPE", "with_profiles"]

TYPE = "profile"
FIELD = "profile"
# What a profile says of itself and not of runs.
_ITS_OWN = frozenset({"type", "name", "default", "description", "protect", "ignore", "initial"})


class _Profile(NamedTuple):
    file: str
    node: MappingNode
    fields: MappingNode
    is_default: bool
    is_spoiled: bool
    size: int


def with_profiles(
    documents: Sequence[Written], *, is_complete: bool
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents with each run's profile merged under it, and what is wrong.

    `is_complete`: every document is known, so a profile that is not among them does not exist.
    """
    if not any(map(_is_concerned, documents)):
        return list(documents), []
    profiles = _profiles(documents)
    mistakes = list(_several_defaults(profiles.values()))
    default = next((one for one in profiles.values() if one.is_default), None)
    done = []
    work = 0
    for document in documents:
        node = document.node
        if not isinstance(node, MappingNode) or not _is_run(node):
            done.append(document)
            continue
        named = node.get(FIELD)
        profile = default if named is None else _named(named, profiles)
        if named is not None and profile is None:
            done.append(document.spoiled())
            if is_complete:
                mistakes.append(Mistake(document.file, node, _unknown(named, profiles)))
        elif profile is not None:
            work += profile.size
            if work > WORK_MAX:
                mistakes.append(Mistake(profile.file, profile.node, _too_much(), is_general=True))
                # As they are written: to read a million values takes seconds, and none is used.
                return [one.spoiled() for one in documents], mistakes
            done.append(_merged(document, node, profile))
        else:
            done.append(document)
    return done, mistakes


def _is_concerned(document: Written) -> bool:
    """Whether it is a profile or names one; in nearly all trees nothing does."""
    if not isinstance(document.node, MappingNode):
        return False
    return any(
        key.raw == FIELD
        or (key.raw == "type" and isinstance(value, ScalarNode) and value.raw == TYPE)
        for key, value in document.node.entries
    )


def _is_run(node: MappingNode) -> bool:
    type_name = _text(node.get("type"))
    return type_name in KINDS and KINDS[type_name].name == "run"


def _profiles(documents: Iterable[Written]) -> dict[str, _Profile]:
    found: dict[str, _Profile] = {}
    for document in documents:
        node = document.node
        if not isinstance(node, MappingNode) or _text(node.get("type")) != TYPE:
            continue
        name, default = _text(node.get("name")), node.get("default")
        fields = tuple(entry for entry in node.entries if entry[0].raw not in _ITS_OWN)
        lent = foreign(MappingNode(fields, node.place), document.file)
        assert isinstance(lent, MappingNode), lent
        is_default = isinstance(default, ScalarNode) and default.value is True
        found.setdefault(
            name,
            _Profile(document.file, node, lent, is_default, document.is_spoiled, size_of(lent)),
        )
    found.pop("", None)
    return found


def _several_defaults(profiles: Iterable[_Profile]) -> Iterable[Mistake]:
    defaults = [one for one in profiles if one.is_default]
    for other in defaults[1:]:
        yield Mistake(
            other.file,
            other.node,
            Problem(
                "contradiction",
                ("default",),
                f"The profile {shown(_text(defaults[0].node.get('name')))} is the default already.",
                "Take `default: true` from one of the two.",
            ),
        )


def _named(named: Node, profiles: dict[str, _Profile]) -> _Profile | None:
    return profiles.get(_text(named))


def _unknown(named: Node, profiles: dict[str, _Profile]) -> Problem:
    name = named.value if isinstance(named, ScalarNode) else None
    close = nearest(name, profiles) if isinstance(name, str) else None
    listed = ", ".join(f"`{one}`" for one in sorted(profiles))
    return Problem(
        "unknown-reference",
        (FIELD,),
        f"No document declares the profile {shown(name)}.",
        (f"Did you mean `{close}`? " if close else "")
        + (f"There is {listed}." if listed else "Declare it: `type: profile`."),
    )


def _too_much() -> Problem:
    return Problem(
        "patch-failed",
        ("name",),
        f"Profiles put more than {WORK_MAX} values into runs.",
        "Name it in fewer runs, or write less into it.",
    )


def _merged(document: Written, run: MappingNode, profile: _Profile) -> Written:
    own = MappingNode(tuple(one for one in run.entries if one[0].raw != FIELD), run.place)
    merged = merge_document(profile.fields, own)
    # The run's own fields first, as people write them; the order means nothing.
    said = {key.raw for key, _ in own.entries}
    ordered = sorted(merged.entries, key=lambda entry: entry[0].raw not in said)
    node = MappingNode(tuple(ordered), run.place)
    changed = replace(document, node=node)
    return changed.spoiled() if profile.is_spoiled else changed


def _text(node: Node | None) -> str:
    return node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else ""

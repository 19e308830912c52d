"""
All layers of an environment in their order, from its lowest base to the profiles.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetform.spec.findings import Problem
from fleetform.spec.overlay.patches import patched
from fleetform.spec.overlay.profiles import with_profiles
from fleetform.spec.overlay.targets import address
from fleetform.spec.overlay.written import Layer, Mistake, Written

__all__ = ["overlay"]


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
        documents = _beside(documents, layer.documents, mistakes)
        documents, wrong = patched(documents, layer.patches, is_complete=is_complete)
        mistakes.extend(wrong)
    documents, wrong = with_profiles(documents, is_complete=is_complete)
    return documents, [*mistakes, *wrong]


def _beside(below: list[Written], own: Sequence[Written], mistakes: list[Mistake]) -> list[Written]:
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

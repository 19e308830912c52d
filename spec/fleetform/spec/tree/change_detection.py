"""
What other documents, and whoever counts them all, see of a document.

Two readings of it that look alike here are the same to all passes behind the reading: no check
between documents can tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.spec.checks.facts import CLAIMS, FACTS
from fleetform.spec.findings import Level
from fleetform.spec.tree.cache import Kept

__all__ = ["OBSTACLES", "OF_THE_TREE", "has_moved", "looks_alike"]

OBSTACLES = frozenset({"not-supported", "undeclared-reference"})
"""Problems of which nobody can carry out a document that is right."""

OF_THE_TREE = frozenset({"too-many-elements", "too-much-text"})
"""Problems that depend on what other documents asked for, and are told anew each time."""


def looks_alike(one: Kept, two: Kept, *, has_disputes: bool) -> bool:
    """
    Whether nothing beyond the document itself can depend on which of the two it is, leaving out
    what it has to itself (`CLAIMS`), which is `claims`' to compare.

    Where some documents of the tree have disputes, which are problems with others, their sentences
    name places: so a document must not have moved.
    """
    before, after = one.outcome, two.outcome
    if not (_is_plain(one) and _is_plain(two)):
        return False
    if has_disputes and before.place != after.place:
        return False
    return (
        before.type == after.type
        and before.keys == after.keys
        and [row[:2] for row in before.rows] == [row[:2] for row in after.rows]
        and before.references == after.references
        and before.required == after.required
        and _asked(one) == _asked(two)
        and _facts(one) == _facts(two)
    )


def has_moved(one: Kept, two: Kept) -> bool:
    """Whether the second of two that look alike has something else to itself."""
    claims = CLAIMS.get(one.outcome.keys[0].kind, frozenset())
    return any(
        before.get(name) != after.get(name)
        for before, after in zip(one.outcome.documents, two.outcome.documents, strict=True)
        for name in claims
    )


def _is_plain(kept: Kept) -> bool:
    """It was read, nobody is refused for it, and nothing is wrong with it but by itself."""
    outcome = kept.outcome
    return (
        outcome.is_read
        and not outcome.is_spoiled
        and outcome.keys[0].kind in FACTS
        and len(kept.told) == len(outcome.problems)
        and not any(
            problem.level is Level.ERROR or problem.code in OBSTACLES or problem.code in OF_THE_TREE
            for problem in outcome.problems
        )
    )


def _asked(kept: Kept) -> list[Any]:
    """What it names under `files:`; what lies there is its own matter."""
    return [answer[:2] for answer in kept.conditions.files]


def _facts(kept: Kept) -> list[Mapping[str, Any]]:
    kind = kept.outcome.keys[0].kind
    facts = FACTS[kind] - CLAIMS.get(kind, frozenset())
    return [
        {name: value for name, value in document.items() if name in facts}
        for document in kept.outcome.documents
    ]

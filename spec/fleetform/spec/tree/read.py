"""
One document of a load on its way: what it came to, where it stands, and what others have against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleetform.spec.desired import Obstacle, ResourceKey
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.nodes import Node
from fleetform.spec.references import Entry
from fleetform.spec.tree.cache import KeptFile
from fleetform.spec.tree.change_detection import OBSTACLES
from fleetform.spec.tree.outcome import Conditions, Outcome

__all__ = ["Read", "entry_of"]

UNNAMED = ResourceKey("", "")
"""Stands for the key of a document without a name."""


@dataclass(slots=True)
class Read:
    """
    One document on its way.

    Attributes:
        conditions: What its outcome depends on; None where that is of no use to another load.
        stub: The kept document that it comes from; None: it was read just now.
        node: What it was read from; None while it comes from a kept one.
        others: Problems that it has with other documents; None while there are none.
        told: Its problems as they are told; the same.
    """

    file: str
    outcome: Outcome
    conditions: Conditions | None
    stub: tuple[KeptFile, int] | None = None
    node: Node | None = None
    others: list[Problem] | None = None
    told: dict[Problem, Finding] | None = None

    @property
    def problems(self) -> Sequence[Problem]:
        return [*self.outcome.problems, *self.others] if self.others else self.outcome.problems

    @property
    def is_broken(self) -> bool:
        return self.outcome.is_broken or any(one.level is Level.ERROR for one in self.others or ())

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Why it cannot be carried out although nothing is wrong with it."""
        return tuple(
            Obstacle(one.code, _field_of(one), one.detail)
            for one in self.problems
            if one.code in OBSTACLES
        )


def _field_of(problem: Problem) -> str:
    """
    As people name a field: `env.TOKEN`, `volumes.instance`.

    Positions in lists are left out; two items with the same obstacle are one to wait for. An
    expression is known by itself, wherever it stands: `secrets.token`.
    """
    if "." in problem.word:
        return problem.word
    names = [step for step in problem.path if isinstance(step, str)]
    return ".".join((*names, problem.word) if problem.word else names)


_NO_ELEMENTS: frozenset[str] = frozenset()


def entry_of(number: int, outcome: Outcome) -> Entry:
    """The document as the checks between documents see it; `number` is its place in the tree."""
    identities = [row.identity for row in outcome.rows if row.identity]
    return Entry(
        number,
        outcome.keys[0] if outcome.keys else UNNAMED,
        outcome.type,
        outcome.place,
        outcome.documents,
        frozenset(identities) if identities else _NO_ELEMENTS,
        outcome.references,
        _wrong_fields(outcome) if outcome.is_broken else frozenset(),
    )


def _wrong_fields(outcome: Outcome) -> frozenset[str]:
    errors = [one for one in outcome.problems if one.level is Level.ERROR]
    names = {str(one.path[0]) if one.path else "" for one in errors}
    # What is inherited and does not fit may be any field.
    return frozenset({*names, ""} if outcome.is_spoiled else names)

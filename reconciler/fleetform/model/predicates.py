"""
Predicates of a plan: whether each still holds, and the sentence that says why one does not.

The planner asks before a person agrees, and the ledger asks in the transaction that enters a plan,
where its answer counts. Both evaluate here, over the `Facts` that each has, so that one cause has
one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fleetform.spec.canonical import canonical_json

if TYPE_CHECKING:
    from fleetform.model.plan import Predicate
    from fleetform.spec.desired import ResourceKey, Rules

__all__ = [
    "BEING_STARTED",
    "CHANGED",
    "GONE",
    "AtWork",
    "Facts",
    "RowFacts",
    "Unmet",
    "running_there",
    "unmet",
]

# Each follows the address of its resource.

BEING_STARTED = "is being started under its current names"
CHANGED = "was changed since the plan"
GONE = "no longer exists"
HAS_STARTED = "has started"
NOT_RESTORABLE = "cannot be restored: another volume has its data now"
OTHER_RULES = "has other rules now, and they judge the plan"
REPLACED = "was replaced by another one of the same name"


def _present(*, archived: bool) -> str:
    return "has a result now" if archived else "exists now"


def running_there(runs: Sequence[str]) -> str:
    """A fleet that the plan removes has runs that the plan does not name."""
    return f"has {_first(runs)} running on it now"


def _mounted_by(runs: Sequence[str]) -> str:
    return f"is mounted by the running {_first(runs)} now"


def _first(runs: Sequence[str]) -> str:
    more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
    return f"run/{runs[0]}{more}"


# Who is at work where a plan ends what is there: the value of a predicate `at-work`.
# A fleet that goes takes with it all that is on its hosts. Where single hosts give way to others, what
# begins on the rest of the fleet is nobody's concern.


@dataclass(frozen=True, slots=True)
class AtWork:
    """`runs` are those that may end, by name; `hosts` those that they end on, empty for all."""

    runs: frozenset[str]
    hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> AtWork:
        """Read what `text` has written."""
        said = json.loads(text)
        if isinstance(said, list):
            return cls(frozenset(said))
        return cls(frozenset(said["runs"]), frozenset(said["hosts"]))

    @property
    def text(self) -> str:
        runs = sorted(self.runs)
        return canonical_json({"hosts": sorted(self.hosts), "runs": runs} if self.hosts else runs)

    def begun(self, work: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
        """Name the runs that would end there and are not in `runs`, of the work on one fleet."""
        here = {run for run, hosts in work if self.concerns(hosts)}
        return sorted(here - self.runs)

    def concerns(self, hosts: Iterable[str]) -> bool:
        """Tell whether work on these hosts would end; without hosts, where they run is unknown."""
        there = frozenset(hosts)
        return not self.hosts or not there or not self.hosts.isdisjoint(there)


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What predicates ask of a resource's row; `has_started` is of a run's latest attempt."""

    uid: str
    generation: int
    archived: bool
    has_started: bool


class Facts(Protocol):
    """What exists now, as far as predicates ask."""

    def ledger(self) -> str:
        """Return the ledger's id and epoch, as `<id>/<epoch>`."""

    def rules(self) -> Rules: ...
    def row(self, key: ResourceKey) -> RowFacts | None: ...
    def work_on(self, fleet: str) -> Iterable[tuple[str, Iterable[str]]]:
        """Yield runs that hold something of the fleet, with their hosts; no hosts: not known."""

    def mounting(self, volume: str) -> Collection[str]:
        """Name the runs at work that have the volume mounted."""

    def retained(self) -> Collection[str]:
        """Return the uids of released volumes whose data can be adopted."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a predicate no longer holds; `row` is the row of now, in place of the one that changed."""

    detail: str
    row: RowFacts | None = None


def unmet(predicate: Predicate, facts: Facts, planned_uid: str = "") -> Unmet | None:
    """
    Say why a predicate does not hold; None where it does.

    Args:
        predicate: Of a plan.
        facts: What exists now.
        planned_uid: Of the row that the plan was made from; empty where it does not say.
    """
    claim, value, key = predicate.claim, predicate.value, predicate.resource
    if claim == "ledger":
        return (
            None if value == facts.ledger() else Unmet("the plan was computed from another ledger")
        )
    assert key is not None, predicate
    if claim == "rules":
        same = value == canonical_json(facts.rules().document())
        return None if same else Unmet(OTHER_RULES)
    if claim == "at-work":
        begun = AtWork.of(value).begun(facts.work_on(key.name))
        return Unmet(running_there(begun)) if begun else None
    if claim == "unattached":
        begun = sorted({*facts.mounting(key.name)} - {*json.loads(value)})
        return Unmet(_mounted_by(begun)) if begun else None
    if claim == "left":
        return None if value in facts.retained() else Unmet(NOT_RESTORABLE)
    row = facts.row(key)
    if claim == "absent":
        free = row is None or (row.archived and predicate.is_free_if_archived)
        return None if free or row is None else Unmet(_present(archived=row.archived))
    if row is None:
        return Unmet(GONE)
    if claim == "generation":
        # The generations of a name begin again with each resource that has it.
        if planned_uid not in {"", row.uid}:
            return Unmet(REPLACED)
        return None if str(row.generation) == value else Unmet(CHANGED, row)
    if claim == "run-not-started":
        return Unmet(HAS_STARTED) if row.has_started else None
    return Unmet(f"has a predicate that this release does not know: {claim!r}")

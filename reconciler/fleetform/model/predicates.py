"""Predicates of a plan: who is at work, and the sentences that say why one is no longer true."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleetform.model.live import Work
from fleetform.spec.canonical import canonical_json

__all__ = [
    "BEING_STARTED",
    "CHANGED",
    "GONE",
    "HAS_STARTED",
    "NOT_RESTORABLE",
    "OTHER_RULES",
    "REPLACED",
    "AtWork",
    "mounted_by",
    "present",
    "running_there",
]

# The sentences that say why a predicate of a plan is no longer true.
# The planner says it before a person agrees, and the ledger says it when it refuses a plan: both use
# these, so that one cause has one sentence. Each follows the address of its resource.

BEING_STARTED = "is being started under its current names"
CHANGED = "was changed since the plan"
GONE = "no longer exists"
HAS_STARTED = "has started"
NOT_RESTORABLE = "cannot be restored: another volume has its data now"
OTHER_RULES = "has other rules now, and they judge the plan"
REPLACED = "was replaced by another one of the same name"


def present(*, archived: bool) -> str:
    """What is there where a plan claims that nothing is."""
    return "has a result now" if archived else "exists now"


def running_there(runs: Sequence[str]) -> str:
    """A fleet that the plan removes has runs that the plan does not name."""
    return f"has {_first(runs)} running on it now"


def mounted_by(runs: Sequence[str]) -> str:
    """A volume that the plan removes is mounted by runs that the plan does not name."""
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

    def begun(self, work: Iterable[Work]) -> list[str]:
        """Name who is at work there and was not told of, of the work on one fleet."""
        here = {one.run for one in work if self.concerns(one.hosts)}
        return sorted(here - self.runs)

    def concerns(self, hosts: Iterable[str]) -> bool:
        """Tell whether work on these hosts would end; nobody knows where they are if there are none."""
        there = frozenset(hosts)
        return not self.hosts or not there or not self.hosts.isdisjoint(there)

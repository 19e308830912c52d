"""
Who is at work where a plan ends what is there: the value of a predicate `at-work`.

A fleet that goes takes with it all that is on its hosts. Where single hosts give way to others, what
begins on the rest of the fleet is nobody's concern.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from fleetform.model.live import Work
from fleetform.spec.canonical import canonical_json

__all__ = ["AtWork"]


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

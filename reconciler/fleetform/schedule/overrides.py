"""
Overrides, as one round sees them.

An override keeps a run waiting and never ends its wait: what it kept goes on by itself when the
override is over, for which the round names the moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fleetform.model.decision import Waiting
from fleetform.model.instance import Instance
from fleetform.model.override import Override, OverrideKind, holding
from fleetform.model.run import Template

__all__ = ["Above"]


@dataclass(frozen=True, slots=True)
class Above:
    """
    The overrides that are in force now and that scheduling is about.

    `paused` are the reasons that all runs share; `ends_at_ms` is when the first of them ends by
    itself, or None.
    """

    paused: tuple[Waiting, ...]
    stops: tuple[Override, ...]
    drains: tuple[Override, ...]
    ends_at_ms: int | None

    @classmethod
    def of(cls, overrides: Iterable[Override], now_ms: int) -> Above:
        here = holding(overrides, now_ms)
        pauses = _of_kind(here, OverrideKind.PAUSE)
        stops = _of_kind(here, OverrideKind.STOP)
        drains = _of_kind(here, OverrideKind.DRAIN)
        ends = [one.until_ms for one in (*pauses, *stops, *drains) if one.until_ms is not None]
        return cls(tuple(map(_waiting, pauses)), stops, drains, min(ends, default=None))

    def reasons(self, template: Template) -> tuple[Waiting, ...]:
        """Say what keeps a run from starting, whatever its document says."""
        if not self.stops:
            return self.paused
        stopped = (one for one in self.stops if one.stops(template.name, template.parent))
        return (*self.paused, *map(_waiting, stopped))

    def drained(self, instances: Iterable[Instance]) -> Iterable[Instance]:
        """The same instances, with those that are drained marked so."""
        if not self.drains:
            return instances
        return [self._marked(instance) for instance in instances]

    def _marked(self, instance: Instance) -> Instance:
        for one in self.drains:
            if one.drains(instance.fleet, instance.name):
                return replace(instance, drained=one.sentence)
        return instance


def _of_kind(overrides: Iterable[Override], kind: OverrideKind) -> tuple[Override, ...]:
    return tuple(one for one in overrides if one.kind is kind)


def _waiting(override: Override) -> Waiting:
    return Waiting("override", override.sentence)

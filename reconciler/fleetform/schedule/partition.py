"""
Which fleets a run may use: those of its queue, of its own `fleets`, and of its volumes.

A queue stands for fleets as a partition of Slurm does. It only narrows the choice: nothing else of a
queue is supported yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleetform.model.decision import Waiting
from fleetform.model.run import Template
from fleetform.schedule.queue import Queue

__all__ = ["Partition", "partition_of"]


@dataclass(frozen=True, slots=True)
class Partition:
    """
    The fleets that a run may use, in its own order; `anywhere` if neither it nor its queue names any.

    `queue` is empty for a run without one. `leads_to` is what that queue names.
    """

    queue: str
    leads_to: tuple[str, ...]
    fleets: tuple[str, ...]
    anywhere: bool
    is_missing: bool = False
    """The run names a queue that the ledger does not have: it waits for that."""

    def allowed(self, there: Iterable[str], volume_fleets: Iterable[str]) -> tuple[str, ...]:
        """Return names of fleets that have instances: as they are listed, else by name."""
        names = sorted(there) if self.anywhere else self.fleets
        known, needed = frozenset(there), frozenset(volume_fleets)
        return tuple(
            name
            for name in dict.fromkeys(names)
            if name in known and all(name == other for other in needed)
        )

    def conflicts(self, template: Template, volumes: Mapping[str, str]) -> tuple[str, ...]:
        """
        Say why no fleet can be left, whatever hosts there are.

        `volumes` has the fleet of each volume that the run mounts: data goes nowhere else.
        """
        if len(set(volumes.values())) > 1:
            places = ", ".join(f"{name} on {fleet}" for name, fleet in sorted(volumes.items()))
            return (f"its volumes are on different fleets: {places}",)
        if self.anywhere:
            return ()
        if not self.fleets:
            named = ", ".join(template.fleets)
            only = f"queue {self.queue} allows {_fleets(self.leads_to)} only"
            return (f"{only}, and `fleets` of the run names {named}",)
        return tuple(
            f"volume {name} is on fleet {fleet}, which {self._excluder(template, fleet)} excludes"
            for name, fleet in sorted(volumes.items())
            if fleet not in self.fleets
        )

    def _excluder(self, template: Template, fleet: str) -> str:
        by_run = template.fleets and fleet not in template.fleets
        return "`fleets` of the run" if by_run else f"queue {self.queue}"

    def reasons(self) -> tuple[Waiting, ...]:
        """Say what a run that waits for room has to know of its queue."""
        if not self.leads_to or self.is_missing:
            return ()
        return (Waiting("queue", f"queue {self.queue} allows {_fleets(self.leads_to)} only"),)


def partition_of(template: Template, queue: Queue) -> Partition:
    """Choose by the run's own queue, else by the default one, if there is any."""
    name = template.queue or queue.default_queue
    leads_to = queue.queue_fleets.get(name, ())
    fleets = template.fleets or leads_to
    if template.fleets and leads_to:
        fleets = tuple(one for one in template.fleets if one in leads_to)
    return Partition(
        queue=name,
        leads_to=leads_to,
        fleets=fleets,
        anywhere=not template.fleets and not leads_to,
        is_missing=bool(name) and name not in queue.queue_fleets,
    )


def _fleets(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"fleet {names[0]}"
    return f"fleets {', '.join(names[:-1])} and {names[-1]}"

"""
One run's hold on instances, and what of them it lends to runs behind it.

`holds` chooses the instances and gives the rule; here is only what a hold knows by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fleetform.model.run import Run
from fleetform.schedule.demand import Take
from fleetform.schedule.units import Free


@dataclass(slots=True)
class Loan:
    """GPUs on a held instance for a run from behind; `spare` is what it uses up, if anything."""

    gpus: tuple[str, ...]
    spare: Free | None


@dataclass(slots=True)
class Hold:
    """
    One run's claim on instances.

    `at_ms` is when it can start at the latest, None when that is not known. `spares` are the
    units beyond its need at that moment, by the order of the instance.
    """

    run: Run
    at_ms: int | None
    spares: dict[int, Free] = field(default_factory=dict)

    def lend(self, order: int, free: Free, take: Take, end_ms: int | None) -> Loan | None:
        """
        Say whether a run that ends by `end_ms` may have `take` of a held instance.

        `order` is the instance's place among all, `free` what it has free now.
        """
        if self.at_ms is not None and end_ms is not None and end_ms <= self.at_ms:
            gpus = free.choose(take)
            return None if gpus is None else Loan(gpus, None)
        spare = self.spares.get(order)
        if spare is None:
            return None
        gpus = _both(spare, free).choose(take)
        return None if gpus is None else Loan(gpus, spare)


def _both(one: Free, other: Free) -> Free:
    return Free(
        min(one.cpu_millicores, other.cpu_millicores),
        min(one.memory_bytes, other.memory_bytes),
        min(one.disk_bytes, other.disk_bytes),
        [gpu for gpu in one.gpus if gpu in other.gpus],
        min(one.blocks, other.blocks),
    )

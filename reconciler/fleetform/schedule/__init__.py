"""
Which run starts where: one pure function of the queue and what is free.

`schedule` drives the live loop and replays of recorded traces alike. It knows no clock and
starts nothing: whoever called it commits the placements, and one that misses is simply
considered again in the next round.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.decision import Decisions
from fleetform.model.instance import Instance
from fleetform.schedule.queue import Policies, Queue, queue_from_state
from fleetform.schedule.round import InForce, Round

__all__ = ["Policies", "Queue", "queue_from_state", "schedule"]


def schedule(
    queue: Queue,
    instances: Iterable[Instance],
    policies: Policies,
    *,
    now_ms: int,
) -> Decisions:
    """
    Decide one round.

    Args:
        queue: What waits, and what is held now.
        instances: Of all fleets, in any state and order. Only ready ones take jobs; the others
            count when a run is judged impossible.
        policies: Rules of the environment.
        now_ms: Unix milliseconds.

    Returns:
        The same decisions for the same inputs in any order. Every run of the queue is in
        exactly one of starts, waiting, impossible and aborts. A second round over the result,
        with the starts allotted, starts nothing more. One over hosts that were created as it asks asks
        for none.
    """
    if not queue.runs and not queue.scaling:
        # Nothing is placed in most rounds, and to measure a thousand instances takes 50 ms.
        return Decisions(next_at_ms=InForce.of(queue.overrides, now_ms).ends_at_ms)
    if not queue.runs:
        instances = [one for one in instances if one.fleet in queue.scaling]
    return Round(queue, instances, policies, now_ms).decide()

"""
Hosts of a fleet whose template changed, exchanged one after another as its `update` says.

`lifecycle.rollout` decides and the ledger writes it down, as in production; who leaves is let go by
whoever has the lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle.rollout import Place, next_moves
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ports import Clock, Ledger
from fleetform.model.rollout import Template
from fleetform.model.run import Job
from fleetform.model.scheduler_state import SchedulerState

__all__ = ["exchange_hosts", "open_jobs"]


def exchange_hosts(ledger: Ledger, book: SchedulerState, clock: Clock, fence: int) -> bool:
    """Write down what is next for each fleet that needs it; returns whether any does."""
    # What a rebuilt ledger has found at work holds nothing, and is there.
    occupied = {one.instance_uid for one in book.allocations}
    occupied.update(job.instance_uid for job in open_jobs(book))
    for fleet, template in book.templates.items():
        places = [
            _place(one, template, is_idle=one.uid not in occupied)
            for one in book.instances
            if one.fleet == fleet
        ]
        moves = next_moves(template, places)
        if moves:
            ledger.commit_exchanges(fleet, template, moves, fence=fence, now_ms=clock.now_ms())
    return bool(book.templates)


def open_jobs(book: SchedulerState) -> Iterator[Job]:
    """Jobs that have a place, and of which nobody has written down that they are over."""
    for job in chain(*(one.jobs for one in book.attempts.values()), book.lingering):
        if job.instance_uid and job.state is not JobState.FINISHED:
            yield job


def _place(instance: Instance, template: Template, *, is_idle: bool) -> Place:
    return Place(
        uid=instance.uid,
        number=instance.number,
        is_outdated=instance.template_digest not in {"", template.digest},
        is_ready=instance.state is InstanceState.READY,
        is_idle=is_idle,
        is_resting=bool(instance.drained),
        is_leaving=instance.state is InstanceState.TERMINATING,
    )

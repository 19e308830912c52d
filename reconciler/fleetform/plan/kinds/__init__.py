"""
What each kind proposes for a difference: one module a kind, and the table that finds it.

A kind says what a change amounts to and which steps carry it out. Whether it may happen now
is for the passes in `holds`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fleetform.model.live import LiveResource
from fleetform.model.plan import Permissions
from fleetform.plan.draft import Proposal
from fleetform.plan.kinds import fleet, queue, run, volume
from fleetform.spec.desired import Declared


class Kind(NamedTuple):
    """
    How one kind answers.

    `change` is asked only where digests differ, or a tombstone is wanted again; None means
    that the two documents mean the same after all. `renew` answers that it is to be made anew,
    whether anything differs or not; None where there is nothing to make anew. `forget` leaves
    all that is there as it is, and `adopt` takes in what is there already.
    """

    create: Callable[[Declared], Proposal]
    change: Callable[[Declared, LiveResource, Permissions], Proposal | None]
    remove: Callable[[LiveResource], Proposal]
    renew: Callable[[Declared, LiveResource, Permissions], Proposal | None]
    forget: Callable[[LiveResource], Proposal]
    adopt: Callable[[Declared], Proposal]


KINDS: dict[str, Kind] = {
    "fleet": Kind(
        fleet.propose_create,
        fleet.propose_change,
        fleet.propose_remove,
        fleet.propose_renew,
        fleet.propose_forget,
        fleet.propose_adopt,
    ),
    "queue": Kind(
        queue.propose_create,
        queue.propose_change,
        queue.propose_remove,
        # There is nothing to make again: `--replace` changes what differs.
        queue.propose_change,
        # `spec` refuses to release or to import a queue: it has nothing that could stay or be there.
        queue.propose_remove,
        queue.propose_create,
    ),
    "run": Kind(
        run.propose_create,
        run.propose_change,
        run.propose_remove,
        run.propose_renew,
        run.propose_forget,
        # Nobody can import a run: `spec` has refused it.
        run.propose_create,
    ),
    "volume": Kind(
        volume.propose_create,
        volume.propose_change,
        volume.propose_remove,
        volume.propose_renew,
        volume.propose_forget,
        volume.propose_adopt,
    ),
}

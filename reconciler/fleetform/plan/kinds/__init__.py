"""
What each kind proposes for a difference: one module a kind, found by its name.

A kind says what a change amounts to and which steps carry it out. Whether it may happen now
is for the passes in `holds`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from fleetform.model.live import LiveResource
from fleetform.model.plan import Permissions
from fleetform.model.verbs import KINDS as NAMES
from fleetform.plan.draft import Proposal
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


def _kind(name: str) -> Kind:
    module = importlib.import_module(f"{__name__}.{name}")
    return Kind(
        module.propose_create,
        module.propose_change,
        module.propose_remove,
        # There may be nothing to make again: `--replace` changes what differs.
        getattr(module, "propose_renew", module.propose_change),
        # `spec` refuses to release or to import a kind that has nothing that could stay or be there.
        getattr(module, "propose_forget", module.propose_remove),
        getattr(module, "propose_adopt", module.propose_create),
    )


KINDS: Mapping[str, Kind] = {name: _kind(name) for name in NAMES}

"""
What keeps a proposed change from being carried out now: one pass a reason, in order.

A change is held once, by the first that applies, because that is the one to clear away first.
"""

from __future__ import annotations

from collections.abc import Callable

from fleetform.plan.blockers.account import hold_ungranted_root, hold_without_account
from fleetform.plan.blockers.budget import hold_beyond_budget
from fleetform.plan.blockers.dependency import hold_dependants
from fleetform.plan.blockers.freeze import (
    hold_in_window,
    hold_overridden,
    hold_unfinished,
    hold_while_recovering,
)
from fleetform.plan.blockers.places import hold_taken_places
from fleetform.plan.blockers.protection import (
    hold_destruction,
    hold_forgotten_in_use,
    hold_owned_elsewhere,
    hold_protected,
    hold_volumes_in_use,
)
from fleetform.plan.blockers.unknown_instances import hold_with_unknown_instances
from fleetform.plan.blockers.unsupported import (
    hold_beyond,
    hold_broken,
    hold_hostless,
    hold_on_missing_volumes,
)
from fleetform.plan.draft import PlanDraft
from fleetform.plan.hosts import hold_silent_hosts, hold_taken_names
from fleetform.plan.renames import hold_moved_nowhere, hold_while_starting
from fleetform.plan.volume_hosts import (
    hold_on_disks,
    hold_on_silent_hosts,
    hold_without_volume_host,
)

PASSES: tuple[Callable[[PlanDraft], None], ...] = (
    # Nothing else matters while the ledger may be wrong about everything.
    hold_while_recovering,
    # What a broken document meant is not known, so no other pass can judge it.
    hold_broken,
    # Nothing else can be said of what nobody can carry out.
    hold_beyond,
    # An earlier apply owns the resource until it is finished.
    hold_unfinished,
    hold_while_starting,
    # Not even a flag may remove what an entry says is something else.
    hold_moved_nowhere,
    # What passes by itself comes before what somebody has to do something about.
    hold_overridden,
    hold_in_window,
    hold_owned_elsewhere,
    hold_hostless,
    hold_with_unknown_instances,
    hold_on_missing_volumes,
    hold_on_silent_hosts,
    hold_without_volume_host,
    hold_on_disks,
    hold_ungranted_root,
    hold_without_account,
    # Protection cannot be allowed away by a flag: it comes before what can.
    hold_protected,
    hold_volumes_in_use,
    hold_forgotten_in_use,
    hold_taken_names,
    # Before what a flag allows: no flag makes a silent host end what runs there.
    hold_silent_hosts,
    hold_destruction,
    # Counts what would really be destroyed, so it follows everything that holds by itself.
    hold_beyond_budget,
    # Last: it follows what the others have held.
    hold_dependants,
    # A place is taken as long as whoever has it is held.
    hold_taken_places,
)

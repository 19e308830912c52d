"""
Check documents against each other, in the order of the table `CHECKS`.

A check sees the catalogue and yields each problem with the entry that it is about. It reports what
it alone knows: a name that does not exist is reported by `check_unknown`, and every other check
passes over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fleetform.spec.checks.capacity import check_capacity, check_gpus, check_interconnect
from fleetform.spec.checks.dependencies import check_cycles, check_elements
from fleetform.spec.checks.hosts import check_hosts
from fleetform.spec.checks.queues import check_queues
from fleetform.spec.checks.quotas import check_quotas
from fleetform.spec.checks.references import (
    check_duplicates,
    check_empty,
    check_unknown,
    check_unused,
)
from fleetform.spec.checks.reservations import check_reservations
from fleetform.spec.checks.volumes import (
    check_attachments,
    check_mounts,
    check_paths,
    check_volume_hosts,
)
from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry

__all__ = ["CHECKS", "check", "check_empty"]

Check = Callable[[Catalogue], Iterator[tuple[Entry, Problem]]]

CHECKS: tuple[Check, ...] = (
    # First: which of two documents the others see is arbitrary, so both are held back.
    check_duplicates,
    check_unknown,
    check_paths,
    check_hosts,
    check_volume_hosts,
    check_mounts,
    check_reservations,
    # Matches elements only between runs that exist.
    check_elements,
    # Follows names, and passes over those that lead nowhere.
    check_cycles,
    # Warnings and notes come last: they are about a tree that is otherwise right.
    check_gpus,
    check_capacity,
    check_interconnect,
    check_attachments,
    check_queues,
    check_quotas,
    check_unused,
)


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """All problems between the documents of a tree."""
    for each_check in CHECKS:
        yield from each_check(catalogue)

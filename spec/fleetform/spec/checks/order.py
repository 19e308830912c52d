"""
The checks between documents, in the order in which they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fleetform.spec.checks import (
    attachments,
    capacity,
    cycles,
    duplicates,
    each,
    empty,
    gpus,
    hosts,
    interconnect,
    mounts,
    paths,
    queues,
    quotas,
    reservations,
    unknown,
    unused,
)
from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry

__all__ = ["CHECKS", "check", "check_tree"]

Check = Callable[[Catalogue], Iterator[tuple[Entry, Problem]]]

CHECKS: tuple[Check, ...] = (
    # First: which of two documents the others see is arbitrary, so both are held back.
    duplicates.check,
    unknown.check,
    paths.check,
    hosts.check,
    mounts.check,
    reservations.check,
    # Matches elements only between runs that exist.
    each.check,
    # Follows names, and passes over those that lead nowhere.
    cycles.check,
    # Warnings and notes come last: they are about a tree that is otherwise right.
    gpus.check,
    capacity.check,
    interconnect.check,
    attachments.check,
    queues.check,
    quotas.check,
    unused.check,
)


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """All problems between the documents of a tree."""
    for each_check in CHECKS:
        yield from each_check(catalogue)


check_tree = empty.check

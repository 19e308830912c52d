"""A tree that is edited stays one that loading would accept."""

from __future__ import annotations

import random

import pytest

from simulation.apply.tree import Tree


@pytest.mark.parametrize("seed", range(30))
def test_edits_leave_nothing_dangling(seed: int) -> None:
    """What a document refers to is declared, unless just now nothing can be read of runs."""
    tree = Tree.draw(random.Random(seed))
    for _ in range(20):
        tree.edit()
        desired = tree.desired()
        known = desired.resources.keys()
        for one in desired.resources.values():
            assert known >= set(one.references), f"{one.key} refers to {one.references}"
        assert not known & {*tree.removed, *(old for old, _ in tree.moved)}
        if not (desired.unread or desired.broken):
            assert known >= {*tree.imports, *(new for _, new in tree.moved)}


def test_the_same_seed_is_the_same_tree() -> None:
    """Nothing but the seed decides."""
    first, second = (Tree.draw(random.Random(7)) for _ in range(2))
    for _ in range(10):
        first.edit()
        second.edit()
        assert first.desired() == second.desired()


def test_the_last_commit_can_be_carried_out() -> None:
    """Everything can be read, and each fleet has a host."""
    for seed in range(30):
        tree = Tree.draw(random.Random(seed))
        for _ in range(5):
            tree.edit()
        tree.settle(there=(), released_hosts=())
        desired = tree.desired()
        assert not desired.broken
        assert not desired.unread
        assert all(nodes > 0 for nodes, _ in tree.fleets.values())

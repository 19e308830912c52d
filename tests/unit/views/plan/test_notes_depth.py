from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.views.plan.notes import depth_text
from unit.plan.trees import NOW_MS, ledger, planned, tree

PLAN = planned(tree(), ledger())


@pytest.mark.parametrize(
    ("annex", "text"),
    [
        ({}, "compared with the ledger"),
        ({"hosts": {"seen_at_ms": NOW_MS - 59_000}}, "compared with the ledger"),
        (
            {"hosts": {"seen_at_ms": NOW_MS - 7_620_000}},
            "compared with the ledger, which last heard of its hosts 2h07m ago",
        ),
        (
            {"hosts": {"seen_at_ms": NOW_MS - 7_620_000}, "watched_by": "serve"},
            "compared with the ledger",
        ),
        (
            {
                "depth": "preview",
                "preview_failed": ["fleet/gpus"],
                "hosts": {"seen_at_ms": NOW_MS - 7_620_000},
            },
            "compared with the ledger, which last heard of its hosts 2h07m ago, and previewed in the clouds, where 1 preview failed",
        ),
        ({"depth": "refresh", "observed_at_ms": NOW_MS}, "compared with the actual state"),
        (
            {"depth": "refresh", "observed_at_ms": NOW_MS - 60_000},
            "compared with the actual state of 1m00s ago",
        ),
    ],
)
def test_a_plan_says_with_what_it_compares_and_how_old_that_is(annex, text):
    """What is fresh needs no age."""
    assert depth_text(replace(PLAN, annex={**PLAN.annex, **annex})) == text

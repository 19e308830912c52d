"""What fleets on clouds and runs on them cost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fleetform.model.cost import BoughtHost, HostUse, Spending, share_millis
from fleetform.model.volume import DISK
from fleetform.views.cost import CostRow, cost_rows, cost_table, disks_text, total_text
from unit.plan.trees import declare, ledger, row

HOUR = 3_600_000
DOLLAR = 1_000_000

SPENDING = Spending(
    hosts=(
        BoughtHost("a", "gpus", 2 * DOLLAR, created_at_ms=0),
        BoughtHost("b", "gpus", 2 * DOLLAR, created_at_ms=0, ended_at_ms=HOUR),
        BoughtHost("c", "spot", None, created_at_ms=HOUR),
    ),
    uses=(
        HostUse("train[1]", "a", 500, started_at_ms=0, ended_at_ms=HOUR),
        HostUse("train[2]", "a", 500, started_at_ms=HOUR),
        HostUse("eval", "c", 1000, started_at_ms=HOUR, ended_at_ms=2 * HOUR),
    ),
)


def rows(name=None):
    return cost_rows(SPENDING, name=name, now_ms=3 * HOUR)


def test_fleets_and_runs_have_a_row_each():
    """A fleet pays for the life of its hosts, a sweep for its share of them, and what is unknown is counted apart."""
    assert rows() == (
        CostRow("fleet", "gpus", 2, 4 * HOUR, 8 * DOLLAR, 0, 2 * DOLLAR, 0),
        CostRow("fleet", "spot", 1, 2 * HOUR, 0, 2 * HOUR, 0, 1),
        CostRow("run", "eval", 1, HOUR, 0, HOUR, 0, 0),
        CostRow("run", "train", 1, 3 * HOUR, 3 * DOLLAR, 0, DOLLAR, 0),
    )


def test_a_name_shows_the_elements_of_a_sweep():
    """One row for each element; a name that nothing has costs nothing."""
    assert [(row.name, row.spent_micros) for row in rows("train")] == [
        ("train[1]", DOLLAR),
        ("train[2]", 2 * DOLLAR),
    ]
    assert [row.name for row in rows("gpus")] == ["gpus"]
    assert rows("nothing") == ()


def test_the_table_says_what_is_unknown():
    """An unknown price is no zero, in a row and in the sum of all fleets."""
    table = cost_table(rows())
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["fleet", "gpus", "2", "4h00m", "$8.00", "$2.00"],
        ["fleet", "spot", "1", "2h00m", "2h00m at an unknown price", "1 host of unknown price"],
        ["run", "eval", "1", "1h00m", "1h00m at an unknown price", ""],
        ["run", "train", "1", "3h00m", "$3.00", "$1.00"],
    ]
    assert total_text(rows()) == (
        "all fleets: $8.00 + 2h00m at an unknown price so far, $2.00/h + 1 host of unknown price now"
    )
    assert total_text(rows("gpus")) == ""


@pytest.mark.parametrize(
    ("sharing", "amounts", "share"),
    [
        ("whole", ((1, 8),), 1000),
        ("blocks", ((1, 4),), 250),
        ("exact", ((2000, 8000), (1, 0), (1, 2)), 500),
        ("exact", ((0, 8000), (0, 64)), 0),
        ("exact", (), 1000),
    ],
)
def test_a_job_has_the_largest_share_of_a_resource(sharing, amounts, share):
    """A job with half of the GPUs costs half of the host, however few CPUs it has."""
    assert share_millis(sharing, amounts) == share


def test_disks_are_named_and_not_counted():
    """Shared file systems have no size that fleetform knows, and are left out."""
    sizes = {"data": {"size_gb": 10}, "files": {"size_gb": 0, "source": "fs-1:/"}}
    made = [
        replace(
            row(declare("volume", name, {"type": "volume", "backend": "aws"})),
            outputs=json.dumps({DISK: {"id": "vol-1", "zone": "a", **said}}),
        )
        for name, said in sizes.items()
    ]
    assert disks_text([], ledger(*made)) == "not counted, of unknown price: volume data (10GB)"
    assert disks_text([], ledger()) == ""

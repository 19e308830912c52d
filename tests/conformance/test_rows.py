"""Each value that dstack's own models were asked about: it means the same here, or is listed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from conformance import deviations, shape
from conformance.deviations import REFUSED, Deviation, Row
from fleetform.spec.kinds import KINDS

ROWS = deviations.rows()
LISTED = {one.key: one for one in deviations.deviations()}


def ours(row: Row) -> Any:
    """What fleetform makes of the row's value."""
    try:
        return shape.FILES[row.file](row.value)
    except ValueError:
        return REFUSED


def expected(row: Row) -> Any:
    listed = LISTED.get(row.key)
    if listed is None:
        return shape.their_meaning(row.file, row.theirs)
    if listed.here != REFUSED and row.file in shape.WHOLE:
        # Only what differs is listed of a whole document.
        return shape.filled(listed.here)
    return listed.here


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row.key)[:60])
def test_a_value_means_what_it_means_to_dstack(row):
    """Accepted or refused alike and of the same meaning, but for the table of deviations."""
    assert ours(row) == expected(row)


@pytest.mark.parametrize("listed", LISTED.values(), ids=lambda one: "-".join(one.key)[:60])
def test_a_deviation_is_one(listed: Deviation):
    """A row of the table is about a value that there is, and that dstack reads otherwise."""
    (row,) = [one for one in ROWS if one.key == listed.key and one.value == listed.value]
    assert shape.their_meaning(row.file, row.theirs) != expected(row)
    assert listed.why.endswith(".")


def test_no_row_is_left_out(summarise):
    """Every file is read, no deviation is listed twice, and their number is told."""
    assert {row.file for row in ROWS} == set(shape.FILES)
    listed = deviations.deviations()
    assert max(Counter(one.key for one in listed).values()) == 1
    assert len(ROWS) == 457
    agree = sum(row.key not in LISTED for row in ROWS)
    summarise(f"conformance with dstack: {len(ROWS)} rows, {agree} agree, {len(listed)} listed")


@pytest.mark.parametrize("type_name", ["task", "dev-environment", "service", "fleet", "volume"])
def test_a_name_is_required(type_name):
    """The rows' documents without a name are named here; without that they would be refused."""
    with pytest.raises(ValueError, match="name"):
        KINDS[type_name].model.model_validate({"type": type_name})

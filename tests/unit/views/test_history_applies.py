from __future__ import annotations

from fleetform.model.apply import ApplyRecord
from fleetform.views.history import apply_rows


def test_applies_keep_their_order():
    """The ledger says which is newest."""
    records = [ApplyRecord(uid, "digest", "done", "ada", "c0ffee", 1, 2, "ok") for uid in "ba"]
    rows = apply_rows(records)
    assert [row.uid for row in rows] == ["b", "a"]
    assert (rows[0].plan, rows[0].commit, rows[0].finished_at_ms) == ("digest", "c0ffee", 2)

"""What the tests of the background controller share."""

from __future__ import annotations

import json

from integration.ledger.lab import Lab


def process_of(lab: Lab) -> int:
    """Return the id of the background controller; fails where none is running."""
    row = json.loads(lab.run("controller", "show", "--json").stdout)
    assert row is not None, "no controller is running"
    assert row["kind"] == "background", row
    return int(row["pid"])

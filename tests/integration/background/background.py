"""What the tests of the background controller share."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from integration.ledger.lab import PATIENCE_SECONDS, Lab


def process_of(lab: Lab) -> int:
    """Return the id of the background controller; fails where none is running."""
    row = json.loads(lab.run("controller", "show", "--json").stdout)
    assert row is not None, "no controller is running"
    assert row["kind"] == "background", row
    return int(row["pid"])


def wait_until(is_so: Callable[[], bool], told: Callable[[], str]) -> None:
    """Return once it is so; fails with what `told` says after a long while."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)

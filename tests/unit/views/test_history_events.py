"""What happened, a line each."""

from __future__ import annotations

from fleetform.model.history import LoggedEvent
from fleetform.spec.desired import ResourceKey
from fleetform.views.history import event_rows, events_table
from fleetform.views.table import plain_lines


def test_an_event_is_one_line():
    """Time in UTC; attempt and rank only for an event that has them."""
    events = [
        LoggedEvent("plan.applied", 0, "3 changes", number=1),
        LoggedEvent("job.finished", 61_500, "exit code 3", ResourceKey("run", "r"), 2, 0),
    ]
    assert plain_lines(events_table(event_rows(events))) == (
        "TIME                  EVENT         RESOURCE                MESSAGE",
        "1970-01-01T00:00:00Z  plan.applied  -                       3 changes",
        "1970-01-01T00:01:01Z  job.finished  run/r attempt 2 rank 0  exit code 3",
    )

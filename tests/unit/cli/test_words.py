from __future__ import annotations

import pytest

from fleetform.cli.words import counted, duration


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (0, "0.0 s"),
        (412, "0.4 s"),
        (12_000, "12 s"),
        (185_000, "3 min 05 s"),
        (2 * 3_600_000 + 7 * 60_000, "2 h 07 min"),
        (3 * 86_400_000 + 4 * 3_600_000, "3 d 4 h"),
    ],
)
def test_a_span_has_two_units_at_most(span_ms, text):
    """People compare durations at a glance."""
    assert duration(span_ms) == text


def test_one_is_not_plural():
    """Counts read as English."""
    assert (counted(1, "run"), counted(0, "run"), counted(2, "run")) == (
        "1 run",
        "0 runs",
        "2 runs",
    )

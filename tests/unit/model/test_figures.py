"""Amounts for people: rounded down, few digits."""

from __future__ import annotations

import pytest

from fleetform.model import figures


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0B"), (1023, "1023B"), (1 << 10, "1KB"), (1288490189, "1.2GB"), (5 << 40, "5TB")],
)
def test_size(amount: int, text: str):
    """The largest unit that leaves 1 or more."""
    assert figures.size(amount) == text


@pytest.mark.parametrize(
    ("millicores", "text"),
    [(1000, "1 CPU"), (500, "0.5 CPUs"), (16_000, "16 CPUs"), (50, "0.05 CPUs"), (0, "0 CPUs")],
)
def test_cpus(millicores: int, text: str):
    """Parts of a CPU too."""
    assert figures.cpus(millicores) == text


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (0, "0s"),
        (450, "0.4s"),
        (9_999, "9.9s"),
        (12_999, "12s"),
        (185_000, "3m05s"),
        (7_620_000, "2h07m"),
        (273_600_000, "3d04h"),
    ],
)
def test_span(span_ms: int, text: str):
    """Two units at most."""
    assert figures.span(span_ms) == text


@pytest.mark.parametrize(
    ("micros", "text"),
    [(1_006_000, "$1.006"), (206_667, "$0.2067"), (2_000_000, "$2.00"), (104, "$0.0002")],
)
def test_a_price_that_is_multiplied_has_its_digits(micros: int, text: str):
    """`3 attempts of $0.2067` is $0.62; of $0.21 it would be $0.63."""
    assert figures.unit_price(micros) == text

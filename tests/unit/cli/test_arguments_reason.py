"""A reason as somebody types or pastes it."""

from __future__ import annotations

import pytest

from fleetform.cli.arguments import REASON


@pytest.mark.parametrize(
    ("typed", "reason"),
    [("smoke", "smoke"), (" disk\n\n full\t now\n", "disk full now"), (" \n", "")],
)
def test_a_reason_is_one_line(typed: str, reason: str) -> None:
    """It stands within sentences and tables; of blanks alone nothing is left."""
    assert REASON.convert(typed, None, None) == reason


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "break", "--force", "--reason", " "),
        ("apply", "--takeover", "--for", "1h", "--reason", "\n"),
        ("emergency", "pause", "--reason", " "),
    ],
)
def test_a_reason_of_blanks_is_none(typed, lab, words: tuple[str, ...]) -> None:
    """Each command that asks why refuses it, before anything is done."""
    del lab  # the tree that they stand in
    code, _out, err = typed(*words)
    assert code == 1
    assert "reason" in err

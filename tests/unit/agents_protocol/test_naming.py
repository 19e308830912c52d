"""How an environment is named in sentences."""

from __future__ import annotations

from fleetform.agents.protocol.naming import first_digits, short_uid


def test_a_uid_is_cut_to_what_finds_its_environment() -> None:
    """The whole would be a key for whoever reads the sentence; a short word stays as it is."""
    assert short_uid("0b2f6a0e54c54a8e8f0c5d3f2f1c9a77") == "0b2f6a0e…"
    assert first_digits("0b2f6a0e54c54a8e8f0c5d3f2f1c9a77") == "0b2f6a0e"
    assert short_uid("lab") == "lab"

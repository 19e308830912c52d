"""Pieces of the channel of a command: sizes and signals there and back."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.exec_pieces import Size


@pytest.mark.parametrize(
    ("size", "read"),
    [((24, 80), (24, 80)), ((0, 0), (0, 0)), ((70_000, -3), (65_535, 0))],
)
def test_sizes(size: tuple[int, int], read: tuple[int, int]) -> None:
    """What no terminal can have is the nearest that one can."""
    piece = exec_pieces.resize(Size(*size))
    assert piece[0] == exec_pieces.RESIZE
    assert exec_pieces.parse_size(piece[1:]) == read


def test_signals_have_names() -> None:
    """Only those that make sense for a command."""
    piece = exec_pieces.signal_piece("INT")
    assert (piece[0], exec_pieces.parse_signal(piece[1:])) == (exec_pieces.SIGNAL, "INT")
    for wrong in (b"", b"SEGV", b"SIGINT", b"\xff", b"2"):
        with pytest.raises(ValueError, match="cannot be sent"):
            exec_pieces.parse_signal(wrong)
    for wrong in (b"", b"123", b"12345"):
        with pytest.raises(ValueError, match="4 bytes"):
            exec_pieces.parse_size(wrong)

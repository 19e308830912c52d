"""
What travels on a channel of the kind `exec`: pieces of input and output, sizes and signals.

A piece is the data of one `ChannelData`. Its first byte says what it is. Sizes and signals are
small and leave at once, whatever input still waits for credit. Standard library only, Python 3.9.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

DATA = 0
"""To the agent: standard input. From it: standard output, or all that a terminal shows."""

ERRORS = 1
"""From the agent: standard error of a command without a terminal."""

END_OF_INPUT = 2
RESIZE = 3
SIGNAL = 4

_SIZE = struct.Struct(">HH")

SIZE_MAX = 0xFFFF
"""Of rows and of columns: what the kernel's `struct winsize` holds."""

SIGNALS = ("HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "TSTP", "CONT")
"""What may be sent, by name: the numbers differ between systems."""


class Size(NamedTuple):
    """Of a terminal, in characters."""

    rows: int
    columns: int


def resize(size: Size) -> bytes:
    rows, columns = (min(max(number, 0), SIZE_MAX) for number in size)
    return bytes([RESIZE]) + _SIZE.pack(rows, columns)


def parse_size(content: bytes) -> Size:
    """Read what `resize` wrote behind its first byte; raises ValueError for anything else."""
    if len(content) != _SIZE.size:
        raise ValueError(f"a size has {_SIZE.size} bytes, not {len(content)}")
    return Size(*_SIZE.unpack(content))


def signal_piece(name: str) -> bytes:
    return bytes([SIGNAL]) + name.encode("ascii")


def parse_signal(content: bytes) -> str:
    """Return the signal's name without `SIG`; raises ValueError for one that is not in `SIGNALS`."""
    name = content.decode("ascii", "replace")
    if name not in SIGNALS:
        raise ValueError(f"the signal {name!r} cannot be sent")
    return name

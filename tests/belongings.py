"""
What this process has open and whom it has begun: a test leaves no more of either than it found.

A file that is left open costs nothing until some other test, on a machine with a lower limit, is
refused its own: there it fails, and here is why.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Sequence
from pathlib import Path

SECONDS_MAX = 10.0
"""How long what is on its way out may take: a thread that closes, a child that is waited for."""

_SHOWN_MAX = 8
_STANDARD = ("0", "1", "2")
"""Not counted: what they lead to changes as output is captured."""


def held() -> frozenset[str]:
    """Name each open file with its number, and each child."""
    return frozenset((*_open_files(), *_children()))


def left_since(before: frozenset[str]) -> list[str]:
    """
    Return what is held now and was not before, in order.

    What goes by itself is given its time, and what is garbage is collected.
    """
    left = held() - before
    if not left:
        return []
    gc.collect()
    until = time.monotonic() + SECONDS_MAX
    while (left := held() - before) and time.monotonic() < until:
        time.sleep(0.05)
    return sorted(left)


def told(left: Sequence[str]) -> str:
    """Say what was left, a line each, and of children what they run."""
    lines = [f"{one}{_command(one)}" for one in left[:_SHOWN_MAX]]
    if len(left) > _SHOWN_MAX:
        lines.append(f"and {len(left) - _SHOWN_MAX} more")
    return "\n  ".join(lines)


def _command(one: str) -> str:
    kind, _, pid = one.partition(" ")
    if kind != "child":
        return ""
    with contextlib.suppress(OSError):
        if words := Path(f"/proc/{pid}/cmdline").read_bytes():
            return ": " + words.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    return ": it has ended, and nobody has waited for it"


def _open_files() -> list[str]:
    found = []
    # Twice for each of ten thousand tests: not by `Path`, which takes five times as long.
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- see above
        # The folder's own is closed by then.
        with contextlib.suppress(OSError):
            if number not in _STANDARD:
                found.append(f"file {number}: {os.readlink(f'/proc/self/fd/{number}')}")  # noqa: PTH115 -- see above
    return [one for one in found if not one.endswith("/fd")]


def _children() -> list[str]:
    pids = []
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 -- as above
        # It may end meanwhile; a kernel may be built without the list.
        with (
            contextlib.suppress(OSError),
            open(f"/proc/self/task/{thread}/children", encoding="ascii") as children,  # noqa: PTH123 -- as above
        ):
            pids += children.read().split()
    return [f"child {pid}" for pid in pids]

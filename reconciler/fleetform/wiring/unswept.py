"""
A stretch of a command that ends soon after, in which nobody looks for garbage.

What a load and a plan make is kept until the end and refers to nothing in a circle. Each search goes
through what is new all the same, and finds nothing: of a plan of a hundred thousand resources that
was a tenth.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["unswept"]


@contextmanager
def unswept() -> Iterator[None]:
    """
    Make without a search, and leave out of every later one what there is at the end.

    Not for a process that goes on for long: what has become garbage in here stays in memory.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()

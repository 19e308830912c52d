"""How an environment is named in sentences: by as much of its uid as people need to find it."""

from __future__ import annotations

__all__ = ["short_uid"]

_SHOWN = 8
"""Of 32. The whole is a key of what plans hide, and sentences end in ledgers and in logs."""


def short_uid(uid: str) -> str:
    """Give the beginning of a uid: `0b2f6a0e…`; a short word is given as it is."""
    return f"{uid[:_SHOWN]}…" if len(uid) > _SHOWN else uid

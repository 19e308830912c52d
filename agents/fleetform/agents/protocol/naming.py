"""How an environment is named in sentences: by as much of its uid as people need to find it."""

from __future__ import annotations

__all__ = ["first_digits", "short_uid"]

_SHOWN = 8
"""Of 32. The whole is a key of what plans hide, and sentences end in ledgers and in logs."""


def first_digits(uid: str) -> str:
    """Give as much of a uid as rows for programs have, which the whole is not in."""
    return uid[:_SHOWN]


def short_uid(uid: str) -> str:
    """Give the beginning of a uid: `0b2f6a0e…`; a short word is given as it is."""
    return f"{first_digits(uid)}…" if len(uid) > _SHOWN else uid

"""Numbers of things in sentences: `1 run`, `2 runs`."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write `1 run`, `2 runs`; `plural` is for nouns that take more than an `s`."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"

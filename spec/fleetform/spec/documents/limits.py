"""How much one file may ask of whoever reads it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Bounds of one file; what is beyond is a finding.

    The defaults let ten thousand documents of thirty values stand in one file, and keep the
    worst files there are (`tests/bench/bench_documents.py`) near three seconds and 120 MB.
    """

    bytes_max: int = 8 * 2**20
    """Size of the file."""

    depth_max: int = 64
    """Collections in each other, aliases followed. The deepest field there is lies at 8."""

    nodes_max: int = 400_000
    """Values of the file, aliases followed: one kilobyte of nested aliases can mean billions."""

    findings_max: int = 50
    """Findings about one file; a binary file has a finding on every line, and nobody reads it."""


DEFAULT = Limits()

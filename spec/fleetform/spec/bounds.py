"""
The bounds that more than one pass holds, apart from the models: those are not always imported.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ELEMENTS_MAX", "PATCHES_MAX", "REASON_MAX", "ROOT_DISK_GB", "WINDOWS_MAX"]

ELEMENTS_MAX = 100_000
"""
Elements of one array or sweep: what one plan can still show and one ledger still write at once.
Slurm's own limit is 4 000 001, and its default 1 001.
"""

PATCHES_MAX = 1000
"""Patches of one environment: each is looked for among all documents."""

WINDOWS_MAX = 100
"""Freeze windows of an environment. Each is looked at for each plan; a year's holidays are some thirty."""

REASON_MAX = 200
"""Characters of a window's reason: it stands in one line with what it holds."""


ROOT_DISK_GB = 100
"""The disk of an instance whose fleet declares none: an image with CUDA fills half of it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    How much one file may ask of its reader; what is beyond is a finding.

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
    """Findings about one file; a binary file would have a finding on every line."""


DEFAULT = Limits()

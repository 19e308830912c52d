"""
The bounds that more than one pass holds, apart from the models: those are not always imported.
"""

from __future__ import annotations

__all__ = ["ELEMENTS_MAX", "PATCHES_MAX", "REASON_MAX", "WINDOWS_MAX"]

ELEMENTS_MAX = 100_000
"""
Elements of one array or sweep: what one plan can still show and one ledger still take in at once.
Slurm's own limit is 4 000 001, and its default 1 001.
"""

PATCHES_MAX = 1000
"""Patches of one environment: each is looked for among all documents."""

WINDOWS_MAX = 100
"""Freeze windows of an environment. Each is looked at for each plan; a year's holidays are some thirty."""

REASON_MAX = 200
"""Characters of a window's reason: it stands in one line with what it holds."""

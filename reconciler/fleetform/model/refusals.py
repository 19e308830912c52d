"""
What a ledger may answer instead of doing what it was asked; a part of its port.

They stand apart from `ports` because each command that opens a ledger may meet one, and only
those that drive runs need the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["FenceLost", "LedgerOutgrown", "LedgerUnavailable", "LedgerUnusable", "PolicyRefused",
           "StalePlan"]  # fmt: skip


class StalePlan(Exception):
    """A predicate of the plan no longer holds. `failures` names each with the value of now."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("; ".join(failures))
        self.failures = tuple(failures)


class PolicyRefused(Exception):
    """
    A rule that was applied last, or an override, forbids it; nothing was written.

    `advice` is the next thing to do.
    """

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class LedgerUnavailable(Exception):
    """
    The ledger cannot be used now (disk full, busy, its server away): try again later.

    Nothing was written, unless it says that this is not known: whoever writes may do it again.
    """


class LedgerUnusable(Exception):
    """The ledger cannot be used by any process; `advice` is the next thing to do."""

    def __init__(self, message: str, *, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class LedgerOutgrown(Exception):
    """A host knows what it can only have from a newer ledger than this one; says how."""


class FenceLost(Exception):
    """Another process has become the manager: stop causing effects."""

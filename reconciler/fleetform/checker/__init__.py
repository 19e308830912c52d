"""
A second, independent reader of plans.

It shares no code with `plan`: it looks at what a plan would do, step by step, and compares
that with what is declared, what exists and what is allowed. A violation is a fault of ours,
and such a plan is never carried out.
"""

from fleetform.checker.check import check
from fleetform.checker.context import Invariant, Violation

__all__ = ["Invariant", "Violation", "check"]

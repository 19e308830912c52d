"""
What every judge keeps: sentences about broken promises, faults, and a line for all that happened.

It stands outside the code under test; nothing it holds is ever read by what it judges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Witness"]


@dataclass(slots=True)
class Witness:
    """
    Attributes:
        violations: Sentences; empty in a run that kept its promises.
        trace: A line for everything that happened, for comparing two runs of one seed.
    """

    violations: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def note(self, time: float, what: str) -> None:
        self.trace.append(f"{time:.6f} {what}")

    def fault(self, time: float, kind: str, what: str) -> None:
        self.faults[kind] += 1
        self.note(time, f"fault {kind}: {what}")

    def violate(self, time: float, sentence: str) -> None:
        self.violations.append(f"at {time:.3f} s: {sentence}")
        self.note(time, f"VIOLATION {sentence}")

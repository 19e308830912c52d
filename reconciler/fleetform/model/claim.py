"""
Who owns what a document asks for, where somebody does already.

Whoever makes a plan may look at what lies on this machine and hand it in: the plan is still a
function of values. Elsewhere the agent finds out, and refuses.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

__all__ = ["Claim"]


@dataclass(frozen=True, slots=True)
class Claim:
    """
    One thing of this machine that bears another owner's mark.

    Attributes:
        what: The thing, as people find it: the absolute path of a directory.
        owner_uid: The environment that owns it; empty where its mark cannot be read.
        owner_name: What people call that environment; empty where the mark does not say.
        holds: What it is over there: `volume data`.
        since_ms: When it was marked, Unix milliseconds, or None where the mark does not say.
    """

    what: str
    owner_uid: str
    owner_name: str = ""
    holds: str = ""
    since_ms: int | None = None

    @property
    def sentence(self) -> str:
        uid = self.owner_uid or "of a uid that cannot be read"
        owner = f"{self.owner_name} ({uid})" if self.owner_name else uid
        since = ""
        if self.since_ms is not None:
            day = dt.datetime.fromtimestamp(self.since_ms // 1000, dt.UTC)
            since = f" since {day:%Y-%m-%dT%H:%M:%SZ}"
        thing = f"{self.holds} of " if self.holds else ""
        return f"{self.what} is {thing}environment {owner}{since}"

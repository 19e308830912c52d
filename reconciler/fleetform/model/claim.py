"""
The other owner of a path that a document asks for.

Whoever makes a plan may look at what lies on this machine and hand it in: the plan is still a
function of values. Elsewhere the agent finds out, and refuses.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from fleetform.model.redaction import short_uid

__all__ = ["Claim"]


@dataclass(frozen=True, slots=True)
class Claim:
    """
    A path of this machine that cannot be used: it has another owner's marker, is too near to
    one that does, is a file, or is missing and so cannot be adopted.

    Attributes:
        what: The thing, as people find it: the absolute path of a directory.
        owner_uid: The environment that owns it; empty where its mark cannot be read.
        owner_name: What people call that environment; empty where the mark does not say.
        holds: What it is over there: `volume data`.
        since_ms: When it was marked, Unix milliseconds, or None where the mark does not say.
        marker_path: Where the mark lies, if not at `what` itself but around or within it; else empty.
        is_inside: It lies within `what`, and not around it.
        is_file: `what` is no directory; nobody owns it then.
        missing: The address of what is to be taken in, and does not exist; else empty. Whoever makes
            it anew is not kept from that.
    """

    what: str
    owner_uid: str
    owner_name: str = ""
    holds: str = ""
    since_ms: int | None = None
    marker_path: str = ""
    is_inside: bool = False
    is_file: bool = False
    missing: str = ""

    @property
    def sentence(self) -> str:
        if self.is_file:
            return f"{self.what} is not a directory, and a volume must be one"
        if self.missing:
            return f"{self.what} does not exist, so there is nothing to import"
        uid = short_uid(self.owner_uid) or "with an unreadable uid"
        owner = f"{self.owner_name} ({uid})" if self.owner_name else uid
        since = ""
        if self.since_ms is not None:
            day = dt.datetime.fromtimestamp(self.since_ms // 1000, dt.UTC)
            since = f" since {day:%Y-%m-%dT%H:%M:%SZ}"
        relation = f"is {self.holds} of" if self.holds else "belongs to"
        whose = f"{relation} environment {owner}{since}"
        if not self.marker_path:
            return f"{self.what} {whose}"
        if self.is_inside:
            return f"{self.marker_path}, inside {self.what}, {whose}"
        return f"{self.what} is inside {self.marker_path}, which {whose}"

    @property
    def cure(self) -> str:
        if self.is_file:
            return "declare the path of a directory"
        if self.missing:
            return (
                f"declare the path where it is, or remove {self.missing} from `import:`; then the"
                " volume is created"
            )
        if not self.marker_path:
            return (
                "declare another path; to use this one, release the volume in that environment"
                " (`removed:`), then delete the marker `.fleetform-volume` there"
            )
        return (
            f"declare a path that neither contains {self.marker_path} nor is inside it: a directory belongs"
            " to one volume, with everything in it"
        )

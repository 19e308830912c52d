"""
`environment.yaml`: which environment a tree is, and what it allows without asking twice.

Without it nothing can be planned: every resource belongs to the environment's uid, and a tree
that does not say whose it is could delete what belongs to another.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fleetform.spec.kinds.base import Flag, Model, Name, Whole, refuse
from fleetform.spec.names import is_uid
from fleetform.spec.quantities.ranges import shown


def _check_uid(value: str) -> str:
    if is_uid(value):
        return value
    raise refuse(
        "bad-uid",
        f"{shown(value)} cannot be an environment's uid.",
        "It is written by `fleetform init`, and never changed: 4 to 64 lower-case letters, digits and dashes.",
    )


class RulesDocument(Model):
    """What the environment allows without asking twice."""

    allow_destroy: Flag | None = None
    """Whether deleting and ending running work need no flag. Example: `true`."""

    delete_percent: Annotated[Whole, Field(ge=0, le=100)] | None = None
    """The largest part of a kind's resources that one plan may delete, in percent. Example: `10`."""

    delete_count: Annotated[Whole, Field(ge=0)] | None = None
    """The same as a number; the larger of the two holds. Example: `5`."""


class EnvironmentDocument(Model):
    """
    Which environment this tree is.

    Example:
        type: environment
        name: local
        uid: 0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77
    """

    type: Literal["environment"]
    """The kind of the document: `environment`."""

    name: Name
    """What people call it. Example: `local`."""

    uid: Annotated[str, AfterValidator(_check_uid)]
    """
    What everything made for it is marked with. Written by `fleetform init`, committed, never
    changed: another uid is another environment. Example: `0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77`.
    """

    rules: RulesDocument | None = None
    """What is allowed without asking twice. Example: `{allow_destroy: true}`."""

"""How far the rollout of a fleet is. Here: most commands that read templates ask for none."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RolloutStatus"]


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """
    How far a rollout is.

    Of so many `hosts` as the fleet shall have, `updated` have the new template and `waiting` have not; `busy` of these have
    jobs. The others are being replaced.
    """

    hosts: int
    updated: int
    waiting: int
    busy: int

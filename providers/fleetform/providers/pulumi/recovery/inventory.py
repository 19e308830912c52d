"""
What exists in an account and region, listed without the engine.

Existence is decided here and not by the state: the state of a change that was cut off does not
know what the cloud created. Tags are the identity, because the creating call writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["IDENTITY_TAG", "Existing", "Inventory", "KnownFirst", "matches"]

IDENTITY_TAG = "fleetform:uid"
"""On everything that costs money; its value is our uid of the thing."""


@dataclass(frozen=True, slots=True)
class Existing:
    """
    A thing in the cloud; `type` is the token of its resource, such as `aws:ec2/instance:Instance`.

    `created_at_ms` is in Unix milliseconds; None: the cloud does not say it.
    """

    type: str
    id: str
    tags: Mapping[str, str]
    created_at_ms: int | None = None


class Inventory(Protocol):
    """Lists the things of one environment in one account and region."""

    async def existing(self) -> Sequence[Existing]:
        """
        List everything with the environment's tag that is not being deleted.

        Of things with the same uid the one that had an agent or a job comes first, then the oldest:
        it is kept. A list may be some minutes behind.
        """
        ...

    async def ended(self) -> Sequence[Existing]:
        """List the instances that have ended in the last hour: they were created, and are not waited for."""
        ...


@dataclass(frozen=True, slots=True)
class KnownFirst:
    """
    An inventory that lists the things with these ids before others.

    They are those whose ids were written down, so they alone can have had an agent or a job.
    """

    inventory: Inventory
    ids: frozenset[str]

    async def existing(self) -> Sequence[Existing]:
        return sorted(await self.inventory.existing(), key=lambda one: one.id not in self.ids)

    async def ended(self) -> Sequence[Existing]:
        return await self.inventory.ended()


def matches(existing: Existing, resource_type: str, inputs: Mapping[str, Any]) -> bool:
    """Tell whether a thing was created for a resource with these inputs."""
    uid = (inputs.get("tags") or {}).get(IDENTITY_TAG)
    return bool(uid) and existing.type == resource_type and existing.tags.get(IDENTITY_TAG) == uid

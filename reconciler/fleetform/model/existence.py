"""
Which instances of clouds certainly no longer exist, and which ones the ledger does not know.

A cloud is asked once for each account and region. That an instance has ended is proof that nothing runs on it; that a list lacks it
is proof only if it has existed for long enough, because a cloud lists new instances late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
    from fleetform.providers.contract.observed import InstanceSeen

__all__ = ["CloudPlace", "ended_text", "is_known", "place_of"]

LISTED_MS = 600_000
"""For how long a cloud may not list an instance that exists: EC2 is eventually consistent."""


class CloudPlace(NamedTuple):
    """What one list of a cloud covers."""

    provider: str
    account: str
    region: str


def place_of(provider: str, endpoint: Mapping[str, Any]) -> CloudPlace:
    """Return the account and region of an instance, given its endpoint."""
    return CloudPlace(provider, str(endpoint.get("account", "")), str(endpoint.get("region", "")))


def ended_text(instance: Instance, listed: Sequence[InstanceSeen], *, now_ms: int) -> str:
    """
    Return a sentence if it is proven that an instance of a cloud no longer exists; empty: it is not.

    Args:
        instance: As the ledger has it.
        listed: The whole list of its account and region.
        now_ms: When that was read.
    """
    if not instance.is_created:
        return ""
    cloud_id = instance.endpoint["id"]
    seen = next((one for one in listed if one.endpoint.get("id") == cloud_id), None)
    if seen is not None:
        return "" if seen.alive else f"{cloud_id} was terminated"
    heard_at_ms = instance.seen_at_ms
    if heard_at_ms is None or now_ms - heard_at_ms < LISTED_MS:
        return ""
    return f"{cloud_id} no longer exists"


def is_known(seen: InstanceSeen, rows: Mapping[str, Instance]) -> bool:
    """
    Tell whether the ledger, as rows by uid, has an instance that a cloud lists.

    A row whose creation was cut off has no id yet, and knows the instance by its uid. Another instance with the uid of a row is
    not known: it was created twice.
    """
    row = rows.get(seen.uid)
    if row is None:
        return False
    return not row.is_created or bool(row.endpoint["id"] == seen.endpoint.get("id"))

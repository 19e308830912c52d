"""
Which instances of clouds certainly no longer exist, and which ones the ledger does not know.

A cloud is asked once for each account and region. That an instance has ended is proof that nothing runs on it; that a list lacks it
is proof only if it has existed for long enough, because a cloud lists new instances late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.model.figures import first_of, moment

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
    from fleetform.providers.contract.observed import InstanceSeen

__all__ = [
    "UNKNOWN_CURE",
    "CloudPlace",
    "cut_off_text",
    "ended_text",
    "instances_of",
    "is_known",
    "place_of",
    "settled_text",
    "unknown_instances_text",
    "unknown_text",
]

LISTED_MS = 600_000
"""For how long a cloud may not list an instance that exists: EC2 is eventually consistent."""


UNKNOWN_CURE = (
    "if the ledger is an older copy, put the newest one back or run `fleetform state rebuild`; else adopt them with"
    " `fleetform fleet adopt`, or end them with `fleetform fleet terminate`"
)
"""What a person does about instances that the ledger does not know."""

_NAMED_MAX = 5


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


def instances_of(fleet: str, listed: Iterable[InstanceSeen]) -> dict[str, str]:
    """Return the ids of the instances of a fleet that exist and are not ending, by uid."""
    return {
        one.uid: str(one.endpoint["id"])
        for one in listed
        if one.fleet == fleet and one.alive and not one.is_ending
    }


def unknown_instances_text(fleet: str, ids: Sequence[str]) -> str:
    """Return a sentence about instances of a fleet, by their ids, that the ledger does not know."""
    return f"fleet {fleet} has instances that the ledger does not know: {first_of(sorted(ids), _NAMED_MAX)}"


def unknown_text(until_ms: int | None, now_ms: int) -> str:
    """
    Return `whether its instance exists is unknown`, with until when.

    `until_ms`: until when the cloud is given time to list the instance, Unix milliseconds; None: that time has not begun.
    """
    until = f" until {moment(until_ms)}" if until_ms is not None and now_ms < until_ms else ""
    return f"whether its instance exists is unknown{until}"


def settled_text(*, is_leaving: bool, exists: bool = False) -> str:
    """Say what becomes of a host whose creation was cut off; `exists`: a cloud lists its instance."""
    kept = "adopts it" if exists else "adopts it, or creates it if there is none"
    return f"`fleetform apply` or a controller {'releases it' if is_leaving else kept}"


def cut_off_text(until_ms: int | None, *, now_ms: int, is_leaving: bool = False) -> str:
    """Return a sentence about a host whose creation was cut off: an instance may exist that the ledger does not know."""
    return (
        f"its creation was cut off, and {unknown_text(until_ms, now_ms)}: `fleetform drift` asks the cloud, and"
        f" {settled_text(is_leaving=is_leaving)}"
    )

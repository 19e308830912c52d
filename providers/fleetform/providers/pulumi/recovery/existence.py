"""
Compare what exists with what the states say: one inventory instead of a refresh of each stack.

A refresh asks the cloud for each resource and takes a second of processor time a stack. Here it is known which
stacks need one. Nothing that only the cloud has is deleted because a state lacks it: the state may be
older than the thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleetform.providers.pulumi.engine.deployment import Deployment, is_of_engine
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG, Existing

__all__ = ["LISTED", "Existence", "compare_existence"]

LISTED = timedelta(minutes=10)
"""For how long a new thing may be missing in an inventory: EC2 is eventually consistent."""


@dataclass(frozen=True, slots=True)
class Existence:
    """
    Where the inventory and the states differ.

    `gone`: uids of things that are no longer there, by stack; these stacks need a refresh.
    `doubled`: things whose uid a state has under another id: one purchase that was made twice.
    `unknown`: things with a uid that no state has; they are shown, and may be adopted.
    """

    gone: Mapping[str, tuple[str, ...]]
    doubled: tuple[Existing, ...]
    unknown: tuple[Existing, ...]


def compare_existence(
    states: Mapping[str, Deployment], existing: Sequence[Existing], *, now: datetime
) -> Existence:
    """
    Compare stacks of one account and region with its inventory.

    Args:
        states: The deployment of each stack, by the stack's name.
        existing: The inventory.
        now: UTC. What was created less than `LISTED` ago may exist without being listed, and is not `gone`.
    """
    shown = {(one.type, one.id) for one in existing}
    known: set[tuple[str, str]] = set()
    uids: set[tuple[str, str]] = set()
    gone: dict[str, tuple[str, ...]] = {}
    for stack, deployment in sorted(states.items()):
        owned = _owned(deployment)
        known |= {(entry["type"], entry["id"]) for entry, _ in owned}
        uids |= {(entry["type"], uid) for entry, uid in owned}
        missing = sorted(
            uid
            for entry, uid in owned
            if (entry["type"], entry["id"]) not in shown and _is_settled(entry, now)
        )
        if missing:
            gone[stack] = tuple(missing)
    extra = [one for one in existing if (one.type, one.id) not in known]
    return Existence(
        gone=gone,
        doubled=tuple(one for one in extra if _key(one) in uids),
        unknown=tuple(one for one in extra if _key(one) not in uids),
    )


def _owned(deployment: Deployment) -> list[tuple[Mapping[str, Any], str]]:
    """List what the state says to exist and an inventory can show, as entry and uid."""
    found = []
    for entry in deployment.get("resources") or ():
        uid = ((entry.get("inputs") or {}).get("tags") or {}).get(IDENTITY_TAG)
        if uid and entry.get("id") and not is_of_engine(entry):
            found.append((entry, uid))
    return found


def _is_settled(entry: Mapping[str, Any], now: datetime) -> bool:
    # The engine writes when it created a resource. What was adopted has no such time, and was listed then.
    created = entry.get("created")
    return not created or now - datetime.fromisoformat(created) >= LISTED


def _key(one: Existing) -> tuple[str, str]:
    return one.type, one.tags.get(IDENTITY_TAG, "")

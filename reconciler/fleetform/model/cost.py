"""What hosts of clouds have cost: how long each existed and at which price, and which runs used it for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["BoughtHost", "HostUse", "Spending", "share_millis"]

WHOLE = 1000
"""The share of a job that has a host for itself, in thousandths."""


@dataclass(frozen=True, slots=True)
class BoughtHost:
    """
    An instance of a cloud, from the answer to its creation to the answer to its release.

    `price_micros` is its price an hour when it was created, in micro-dollars; None: unknown.
    `ended_at_ms` is None while it exists.
    """

    uid: str
    fleet: str
    price_micros: int | None
    created_at_ms: int
    ended_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HostUse:
    """A job on a host of a cloud, from its start to its end; `ended_at_ms` is None while it runs."""

    run: str
    host_uid: str
    share_millis: int
    started_at_ms: int
    ended_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """All instances of clouds that a ledger knows, and all jobs that ran on them."""

    hosts: tuple[BoughtHost, ...] = ()
    uses: tuple[HostUse, ...] = ()


def share_millis(sharing: str, amounts: Sequence[tuple[int, int]]) -> int:
    """
    Return which share of a host a job holds, in thousandths.

    Args:
        sharing: Of the host, as `Instance.sharing`.
        amounts: What the job has and what the host has, of each resource; a host with 0 has none of it.

    Returns:
        The largest share of a resource: with all GPUs of a host a job leaves nothing that another job could pay for.
    """
    if sharing == "whole":
        return WHOLE
    shares = [has * WHOLE // total for has, total in amounts if total]
    return min(WHOLE, max(shares, default=WHOLE))

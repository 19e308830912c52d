"""
How many hosts a fleet has by demand: between which numbers, what a new host is like, and what is asked for.

The scheduler decides how many; by which offer a host is created is in the endpoint of `Scaling.host`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

from fleetform.model.instance import Gpu, Instance, InstanceState

__all__ = [
    "IDLE_SECONDS",
    "IdleHosts",
    "ScaleRequest",
    "Scaling",
    "numbers_kept",
    "places_kept",
    "places_with_offers",
]

IDLE_SECONDS = 300
"""How long a host without jobs is kept if its fleet does not say: the default of dstack for hosts of runs."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """
    The limits of one fleet whose hosts follow demand.

    Attributes:
        least: So many hosts stay without jobs.
        most: The fleet never has more hosts, those that leave included.
        idle_ms: How long a host beyond `least` is kept without jobs; None: without limit.
        places: The numbers of the hosts that the fleet wants now.
        host: What a new host would be like; its uid, name and number mean nothing.
    """

    least: int
    most: int
    idle_ms: int | None
    places: frozenset[int]
    host: Instance

    @classmethod
    def from_step(
        cls,
        fleet: str,
        document: Mapping[str, Any],
        limits: Mapping[str, Any],
        places: Iterable[int],
    ) -> Scaling:
        """Read the `scaling` of a step of a fleet; a new host is as its offer says."""
        place, idle = limits["host"], limits["idle_seconds"]
        offer = place.get("capacity", {})
        host = Instance(
            uid="",
            name="",
            fleet=fleet,
            number=0,
            state=InstanceState.UNCREATED,
            sharing=document.get("sharing", "exact"),
            blocks=document.get("blocks", 1),
            cpu_millicores=offer.get("cpu", 0),
            memory_bytes=offer.get("memory", 0),
            gpus=tuple(Gpu(**gpu) for gpu in offer.get("gpus", ())),
            drained=place.get("drained", ""),
            provider=place["provider"],
            endpoint=place["endpoint"],
            run_as=document.get("run_as", ""),
        )
        idle_ms = None if idle < 0 else idle * 1000
        return cls(limits["min"], limits["max"], idle_ms, frozenset(places), host)


class ScaleRequest(NamedTuple):
    """So many new hosts for a fleet; `runs` wait for them, none where the fleet has too few hosts."""

    fleet: str
    hosts: int
    runs: int


class IdleHosts(NamedTuple):
    """
    Uids of hosts that have nothing to do, or have again.

    `began` are idle from now on, `ended` are not idle any more, `leaving` have been idle for long enough.
    `next_at_ms` is when the next of them has been.
    """

    began: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    next_at_ms: int | None = None

    @property
    def is_news(self) -> bool:
        return bool(self.began or self.ended or self.leaving)


def numbers_kept(
    numbers: Iterable[int], busy: AbstractSet[int], *, least: int, most: int
) -> tuple[int, ...]:
    """
    Return the numbers of the hosts that a fleet has once its limits are `least` and `most`.

    Beyond `most`, hosts without jobs leave first, and those with the highest numbers; below `least`, the
    lowest free numbers are added.
    """
    kept = sorted(numbers, key=lambda one: (one not in busy, one))[:most]
    free = (one for one in range(least + len(kept)) if one not in set(kept))
    return tuple(sorted([*kept, *(next(free) for _ in range(least - len(kept)))]))


def places_kept(
    fleet: str, scaling: Mapping[str, Any], numbers: Iterable[int]
) -> list[dict[str, Any]]:
    """Return the places with these numbers of a fleet whose hosts follow demand, as a step has them."""
    places = [
        {**scaling["host"], "name": f"{fleet}-{number}", "number": number} for number in numbers
    ]
    drained = scaling.get("drained", {})
    return [
        {**one, "drained": drained[one["name"]]} if one["name"] in drained else one
        for one in places
    ]


def places_with_offers(arguments: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the places of a step of a fleet, and what a host is like that demand may bring in."""
    places = list(arguments.get("instances", ()))
    return [*places, arguments["scaling"]["host"]] if "scaling" in arguments else places

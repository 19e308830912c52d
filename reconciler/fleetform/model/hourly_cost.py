"""What hosts cost an hour, and how many of them have no known price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fleetform.model.figures import counted, dollars

__all__ = ["HourlyCost"]


class HourlyCost(NamedTuple):
    """Micro-dollars an hour of the hosts whose price is known, and the number of the others: a sum never hides that it leaves some out."""

    micros: int = 0
    unknown_hosts: int = 0

    def __str__(self) -> str:
        """Write `$3.20/h + 2 hosts of unknown price`."""
        if not self.unknown_hosts:
            return f"{dollars(self.micros)}/h"
        unknown = f"{counted(self.unknown_hosts, 'host')} of unknown price"
        return f"{dollars(self.micros)}/h + {unknown}" if self.micros else unknown

    @classmethod
    def of(cls, endpoints: Iterable[Mapping[str, Any]]) -> HourlyCost:
        """Sum up what instances of a cloud cost."""
        prices = [one.get("price_micros") for one in endpoints]
        return cls(sum(int(one or 0) for one in prices), prices.count(None))

    def plus(self, other: HourlyCost) -> HourlyCost:
        return HourlyCost(self.micros + other.micros, self.unknown_hosts + other.unknown_hosts)

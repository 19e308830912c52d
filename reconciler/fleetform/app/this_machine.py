"""
What this machine has for the hosts of a local fleet that does not exist yet.

The same probes as the agent's, so that a forecast and the first greeting of the agent agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MachineSize", "ThisMachine"]


class MachineSize(NamedTuple):
    """What all hosts of a fleet on one machine share."""

    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int


class ThisMachine:
    """Measures when it is asked: most plans create no host, and need none of the probes."""

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        """The state folder, on whose file system jobs get their directories; it may not exist yet."""

    def size(self) -> MachineSize:
        from fleetform.agents.host.probes import cpu, disk, memory

        folder = next(one for one in (self._state, *self._state.parents) if one.exists())
        return MachineSize(
            cpu.millicores(), memory.measure().total, disk.measure(str(folder)).total
        )

    def may_have_gpus(self) -> bool:
        """Tell whether there is a driver that would know them."""
        from fleetform.agents.host.probes import gpu

        return gpu.present()

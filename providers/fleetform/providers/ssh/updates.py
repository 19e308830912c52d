"""
In which order the hosts of a fleet get the agent of another release: one first, then the rest.

The first host that answers is the canary. Where its new agent does not run, it has its earlier one
back, and no other host of the fleet is touched: a release that does not work costs one restart of
one agent. The next controller, or another release, tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

PARALLEL_MAX = 16
"""An agent that starts reads its journal and jobs: on a busy machine that many are no burden."""


@dataclass(slots=True)
class _Update:
    """A fleet on its way to one release."""

    canary: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_proven: bool = False
    failure: str = ""


class Updates:
    """All updates of one provider."""

    def __init__(self) -> None:
        self._updates: dict[tuple[str, str], _Update] = {}
        self._parallel = asyncio.Semaphore(PARALLEL_MAX)

    async def run(
        self, fleet: str, release: str, update: Callable[[], Awaitable[str]]
    ) -> str | None:
        """
        Update one host when it is its turn.

        Args:
            fleet: Its hosts have a canary of their own.
            release: The digest of the new agent.
            update: Returns why the host runs its earlier agent again, or nothing.

        Returns:
            What `update` returned; None: the canary failed, so this host was not updated.
        """
        state = self._updates.setdefault((fleet, release), _Update())
        if not state.is_proven and not state.failure:
            async with state.canary:
                # A canary that was not reached, or lost, has decided nothing.
                if not state.is_proven and not state.failure:
                    state.failure = await update()
                    state.is_proven = not state.failure
                    return state.failure
        if state.failure:
            return None
        async with self._parallel:
            return await update()

"""The environment's lock as the kernel has it: freed when its holder dies, whatever it was at."""

from __future__ import annotations

import asyncio

__all__ = ["Lock"]


class Lock:
    def __init__(self) -> None:
        self.holder: object | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, who: object) -> bool:
        """Take it if nobody has it."""
        if self.holder is None:
            self.holder = who
        return self.holder is who

    def release(self, who: object) -> None:
        """Give it up; nothing where somebody else has it."""
        if self.holder is who:
            self.holder = None
            self.wake()

    def wake(self) -> None:
        """Let everybody look again who waits for its holder to have done something."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Return when it is worth another look."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

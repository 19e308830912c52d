"""
When an environment is validated: after the last of some edits, beside the event loop, once.

Whoever types makes an edit each 100 ms, and a large environment takes seconds to read. So an
edit is waited out, a reading that an edit has overtaken is given up at the next file it comes
to, and what it found is thrown away: only the newest reading is ever published. One reading
runs at a time, because two would share one interpreter and both be late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from fleetform.spec.findings import Finding
from fleetform.spec.tree import load_file, load_tree
from fleetform.spec.tree.files import Cache

__all__ = ["Superseded", "Validations", "validate", "validate_alone"]

_log = logging.getLogger(__name__)

DELAY_SECONDS = 0.15
"""
How long nothing may be typed before a reading begins. Between two key presses of a fast typist
lie some 120 ms; what comes within 200 ms feels like an answer to the last of them.
"""


class Superseded(Exception):
    """A newer reading was asked for."""


class Buffers(dict[str, bytes]):
    """
    Unsaved texts by file, which end the reading once it is of no use any more.

    The loader asks for every file whether there is a newer text of it. That is the one moment
    in which a reading that runs in a thread can be stopped without harm.
    """

    def __init__(self, texts: Mapping[str, bytes], is_stale: Callable[[], bool]) -> None:
        super().__init__(texts)
        self._is_stale = is_stale

    def __bool__(self) -> bool:
        """True: even with no texts in it, it has to be asked."""
        return True

    def get(self, key: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]  # dict's is overloaded for any default
        if self._is_stale():
            raise Superseded
        return super().get(key, default)


def validate(root: Path, cache: Cache, buffers: Buffers) -> tuple[Finding, ...]:
    """
    All findings about an environment.

    Raises:
        Superseded: A newer reading was asked for meanwhile.
    """
    return load_tree(root, cache=cache, buffers=buffers).findings


def validate_alone(root: Path, file: str, data: bytes) -> tuple[Finding, ...]:
    """What can be told of a file that belongs to no environment: nothing of what it refers to."""
    return load_file(root, file, buffers={file: data}).findings


class Asked(NamedTuple):
    """One reading: of what, and whether a newer one was asked for since."""

    root: Path
    is_stale: Callable[[], bool]


class Validations:
    """
    The readings that are asked for, by environment.

    `check` reads and publishes one, and looks at `is_stale` before it publishes. It must not
    raise but `Superseded`.
    """

    def __init__(
        self, check: Callable[[Asked], Awaitable[None]], *, delay_seconds: float = DELAY_SECONDS
    ) -> None:
        self._check = check
        self._delay_seconds = delay_seconds
        self._numbers: dict[Path, int] = {}
        self._tasks: dict[Path, asyncio.Task[None]] = {}
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="validation")

    def ask(self, root: Path) -> None:
        """Read the environment at `root` once no more is asked for a moment."""
        number = self._numbers[root] = self._numbers.get(root, 0) + 1
        before = self._tasks.get(root)
        if before is not None:
            # Asleep, it ends here; reading, the thread notices that it is stale.
            before.cancel()
        asked = Asked(root, lambda: self._numbers[root] != number)
        self._tasks[root] = asyncio.get_running_loop().create_task(self._run(asked))

    def close(self) -> None:
        """End all readings; waits for none."""
        for root in self._numbers:
            self._numbers[root] += 1
        for task in self._tasks.values():
            task.cancel()
        self.executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, asked: Asked) -> None:
        await asyncio.sleep(self._delay_seconds)
        try:
            await self._check(asked)
        except Superseded:
            _log.debug("validation.superseded")

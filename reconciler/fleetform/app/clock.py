"""The real clock and the real source of uids; simulation has its own."""

from __future__ import annotations

import os
import time


class SystemClock:
    """Implements `model.ports.Clock`."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class RandomIds:
    """Implements `model.ports.Ids`: 128 random bits."""

    def uid(self) -> str:
        # What `secrets` calls, without its import of `hmac` and `random` (5 ms).
        return os.urandom(16).hex()

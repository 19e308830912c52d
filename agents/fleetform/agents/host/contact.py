"""
When the controller last answered this host: the moment from which `silence_seconds` of a job counts.

The agent writes it into one file of its root, and the supervisor of each such job reads it there. So
a supervisor needs no agent to end its job in time, and an agent that has just started no memory.

The moment is that of a heartbeat of the agent which the controller has answered, and not that of the
answer: a line may deliver an answer hours late, when the controller has long counted the job as dead.
"""

from __future__ import annotations

import logging
import os
import time
import zlib

from fleetform.agents.host import layout

NEVER = 0
"""No controller has answered since the host was booted."""

_BYTES = 128
_READS = 5
_READ_AGAIN_SECONDS = 0.001

_log = logging.getLogger("fleetform.agent")


class Contact:
    """
    The agent's side. The current directory is its root.

    Attributes:
        at_ms: Milliseconds of the clock `boot_ms`, or `NEVER`.
    """

    def __init__(self, boot_id: str) -> None:
        self._boot_id = boot_id
        self._file = os.open(layout.CONTACT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        known = read(self._file)
        # The clock starts again with each boot: an old moment would lie in the future.
        self.at_ms = known[1] if known is not None and known[0] == boot_id else NEVER
        self._write()

    def answered(self, at_ms: int, now_ms: int) -> None:
        """The controller has answered the heartbeat of this moment; answers may be late or doubled."""
        if self.at_ms < at_ms <= now_ms:
            self.at_ms = at_ms
            self._write()

    def close(self) -> None:
        os.close(self._file)

    def _write(self) -> None:
        body = f"{self._boot_id} {self.at_ms:020d}".encode("ascii")
        try:
            # In place: a full disk must not end a job whose controller answers.
            os.pwrite(self._file, (b"%s %08x" % (body, zlib.crc32(body))).ljust(_BYTES), 0)
        except OSError as error:
            _log.warning("contact.failed error=%s", error)


def read(file: int) -> tuple[str, int] | None:
    """Return the boot and the moment in the open file; None where nothing whole has been written."""
    for _ in range(_READS):
        body, _, checksum = os.pread(file, _BYTES, 0).rstrip().rpartition(b" ")
        if body and checksum == b"%08x" % zlib.crc32(body):
            boot_id, _, at_ms = body.decode("ascii").rpartition(" ")
            return boot_id, int(at_ms)
        # It is being written at this moment, perhaps.
        time.sleep(_READ_AGAIN_SECONDS)
    return None


def boot_ms() -> int:
    """Return the time since the host was booted, with suspend."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

"""
When a host of a cloud was needed last: a watch of its first boot ends it once that is too long ago.

The watch is no part of the agent: it ends a host also where no agent was ever set up. It leaves a folder in `/run`, and
the agent writes there, in seconds since the boot, when its controller answered last or a job ran last.
"""

from __future__ import annotations

import contextlib
import logging
import os

FOLDER = "/run/fleetform"
"""`providers.first_boot.orphan_watch` makes it; other hosts do not have it."""

NOTE_SECONDS = 60.0
"""How often the agent writes; hosts end after an hour at the earliest."""

_log = logging.getLogger("fleetform.agent")


def is_watched(folder: str = FOLDER) -> bool:
    return os.path.isdir(folder)


def note_needed(at_ms: int, folder: str = FOLDER) -> None:
    """Write that the host was needed at this moment, in milliseconds since the boot; a later one stays."""
    file = os.path.join(folder, "needed")
    before = 0
    with contextlib.suppress(OSError, ValueError), open(file, encoding="ascii") as known:
        before = int(known.read())
    if at_ms // 1000 <= before:
        return
    try:
        with open(f"{file}.new", "w", encoding="ascii") as new:
            new.write(f"{at_ms // 1000}\n")
        os.replace(f"{file}.new", file)
    except OSError as error:
        _log.warning("orphan.failed error=%s", error)

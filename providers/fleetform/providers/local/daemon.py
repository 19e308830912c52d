"""
The agent's process on this machine: started from its archive, reached by its socket.

It is nobody's child in spirit: it has a session of its own, an environment that does not
depend on who started it, and goes on when we end. That no two agents serve one folder is the
agent's own promise, so that two of us may start it at once: one of the two ends by itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.local.folder import Folder

_START_SECONDS = 20.0
"""A start takes 0.2 s; a machine that is swapping takes far longer and is not broken."""

_LAST_WORDS_SECONDS = 2.0
"""How long after our agent has ended another one, started beside it, may take to listen."""

_POLL_SECONDS = 0.01

# What jobs get of the surroundings of whoever happened to start the agent.
_KEPT = ("PATH", "HOME", "LANG", "USER")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def start(folder: Folder, archive: Path, *, idle_exit_seconds: int) -> None:
    """
    See to it that an agent serves the folder.

    Raises:
        TemporaryError: It has not begun to listen; says what it complained of.
    """
    if await answers(folder):
        return
    process = _spawn(folder, archive, idle_exit_seconds)
    patience = time.monotonic() + _START_SECONDS
    while not await answers(folder):
        now = time.monotonic()
        if process.returncode is not None:
            patience = min(patience, now + _LAST_WORDS_SECONDS)
        if now > patience:
            raise TemporaryError(
                f"the agent of {folder.path.name} does not start: "
                f"{folder.last_complaint() or 'it says nothing'}",
                delay_seconds=5.0,
            )
        await asyncio.sleep(_POLL_SECONDS)


async def answers(folder: Folder) -> bool:
    """Tell whether somebody listens on the folder's socket."""
    try:
        _, writer = await dial(folder)
    except OSError:
        return False
    writer.close()
    return True


async def dial(folder: Folder) -> Streams:
    """Connect to the folder's socket; raises OSError when nobody listens."""
    with _short_path(folder.socket) as path:
        return await asyncio.open_unix_connection(path)


@contextmanager
def _short_path(socket: Path) -> Iterator[str]:
    # A socket's address holds 108 bytes (unix(7)); through a descriptor any path is short.
    descriptor = os.open(socket.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{socket.name}"
    finally:
        os.close(descriptor)


def _spawn(folder: Folder, archive: Path, idle_exit_seconds: int) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-I", "-S", str(archive), "daemon"),
        *("--root", str(folder.path), "--idle-exit", str(idle_exit_seconds)),
    ]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # Opened anew each time: it holds the last start only, and so cannot grow without end.
    with folder.complaints.open("wb") as complaints:
        process = subprocess.Popen(
            command,
            cwd="/",
            env={"PATH": os.defpath, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            start_new_session=True,
        )
    # It outlives us as a rule. Where it does not, as under `serve`, somebody has to take in
    # its exit status, or it stays a zombie.
    threading.Thread(target=process.wait, name="reap-agent", daemon=True).start()
    return process

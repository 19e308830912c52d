"""
The agent's process on this machine: started from its archive, reached by its socket.

The command that starts it returns once it listens, and leaves behind an agent that is nobody's
child: it goes on when we end. That no two agents serve one folder is the agent's own promise, so
two of us may start it at once, and both find the same one listening.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetform.agents.host import job_environment
from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.local.folder import Folder

_START_SECONDS = 30.0
"""A start takes 0.2 s; a machine that is swapping takes far longer and is not broken."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def start(folder: Folder, archive: Callable[[], Path], *, idle_exit_seconds: int) -> None:
    """
    See to it that an agent serves the folder; `archive` is called where none does.

    Raises:
        TemporaryError: It does not begin to listen; says what it complained of.
    """
    continue_stopped(folder)
    if await answers(folder):
        return
    complaint = await asyncio.to_thread(_run, _command(folder, archive(), idle_exit_seconds))
    if complaint:
        raise TemporaryError(
            f"the agent of instance {folder.path.name} does not start: {complaint}",
            delay_seconds=5.0,
        )


def continue_stopped(folder: Folder) -> None:
    """
    Let the folder's agent go on where SIGSTOP has stopped it.

    It takes connections then, and answers nothing. Its spawner continues it, and it continues its
    spawner; a job that stops both at once leaves only the controller of this machine.
    """
    try:
        pid = int((folder.path / "agent.pid").read_text(encoding="ascii"))
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        if state == "T" and Path(f"/proc/{pid}/cwd").samefile(folder.path):
            os.kill(pid, signal.SIGCONT)
    except (OSError, ValueError):
        pass  # There is none, or it is not our process.


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


def _command(folder: Folder, archive: Path, idle_exit_seconds: int) -> list[str]:
    return [
        *(sys.executable, "-I", "-S", str(archive), "daemon"),
        *("--root", str(folder.path), "--idle-exit", str(idle_exit_seconds)),
    ]


def _run(command: list[str]) -> str:
    """Run the command that leaves an agent behind; returns its complaint, or nothing."""
    try:
        done = subprocess.run(
            command,
            cwd="/",
            env=job_environment.of_agent({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # Ctrl-C at our terminal is not meant for it.
            start_new_session=True,
            timeout=_START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it has not started within {_START_SECONDS:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}"
    if done.returncode == 0:
        return ""
    # The last line of a traceback says what it is about.
    lines = done.stderr.decode("utf-8", "replace").strip().split("\n")
    return lines[-1] or f"it ended with exit code {done.returncode} and printed nothing"

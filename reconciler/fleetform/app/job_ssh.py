"""
The SSH server of an environment's jobs: its host key, and where OpenSSH finds it.

The key is made once for each environment and lies with its state. OpenSSH gets the same key in a file
of known hosts of its own, so it never asks, and a server with another key is refused.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.exec_in_job import Say, job_streams
from fleetform.spec.private_folder import make_private_folder
from fleetform.views.ssh_command import DOMAIN, JobServer

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.run import Job
__all__ = ["job_server", "serve_job"]

_READ_BYTES = 64 << 10


def job_server(workspace: Workspace, domain: str = DOMAIN) -> JobServer:
    """Say how OpenSSH reaches the jobs of an environment; makes its host key where there is none."""
    known_hosts = _write_known_hosts(workspace)
    proxy = [sys.executable, "-P", "-m", "fleetform.cli.entry", "proxy", "-C", str(workspace.root)]
    if domain != DOMAIN:
        proxy += ["--domain", domain]
    return JobServer(proxy, _alias(workspace), str(known_hosts))


async def serve_job(workspace: Workspace, instance: Instance, job: Job, say: Say) -> None:
    """
    Speak SSH on standard input and output until the client leaves.

    Raises:
        ExecProblem: The job's host cannot be reached, or the connection to it is lost.
    """
    from fleetform.providers.contract.job_streams import JobAddress
    from fleetform.providers.ssh_server import serve

    key = _host_key(workspace)
    async with job_streams(workspace, instance, say) as streams:
        ours, theirs = socket.socketpair()
        for relay in (_relay_in, _relay_out):
            # Threads: pipes and terminals that do not block would not block for others either.
            threading.Thread(target=relay, args=(ours,), daemon=True).start()
        with theirs:
            await serve(theirs, key, streams, JobAddress(job.key, job.uid))


def _relay_in(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, _READ_BYTES):
            end.sendall(data)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_WR)


def _relay_out(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := end.recv(_READ_BYTES):
            while data:
                data = data[os.write(1, data) :]


def _folder(workspace: Workspace) -> Path:
    return workspace.paths.environment / "ssh"


def _alias(workspace: Workspace) -> str:
    return f"fleetform-{workspace.environment.uid}"


def _host_key(workspace: Workspace) -> str:
    """Return the private key; two that make one at the same time get the same."""
    folder = _folder(workspace)
    file = folder / "host_key"
    if not file.exists():
        from fleetform.providers.ssh_server import make_host_key

        make_private_folder(folder)
        # A link is made whole or not at all, and never in place of another one.
        with _written(folder, make_host_key()) as own, contextlib.suppress(FileExistsError):
            os.link(own, file)
    return file.read_text(encoding="ascii")


def _write_known_hosts(workspace: Workspace) -> Path:
    from fleetform.providers.ssh_server import public_key

    folder = _folder(workspace)
    file = folder / "known_hosts"
    line = f"{_alias(workspace)} {public_key(_host_key(workspace))}\n"
    if not file.exists() or file.read_text(encoding="ascii") != line:
        with _written(folder, line) as own:
            own.replace(file)
    return file


@contextlib.contextmanager
def _written(folder: Path, text: str) -> Iterator[Path]:
    """Write a file of this process, which is removed at the end if it is still there."""
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)

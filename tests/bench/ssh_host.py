"""A host over SSH whose session a bench holds itself, with the home that leads to it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from fleetform.providers.contract.hosts import Host, Identity, InstanceRequest
from fleetform.providers.ssh.hosts import SshHosts

_ENVIRONMENT = "b" * 32


def use_home(folder: Path, config: str) -> Path:
    """Make `folder` the home of this process, with `config` for OpenSSH; returns the file of that."""
    (folder / ".ssh").mkdir(mode=0o700, parents=True)
    file = folder / ".ssh/config"
    file.write_text(config)
    os.environ["HOME"] = str(folder)
    return file


@contextlib.asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Host]:
    """Install an agent on host `node1`, connect to it, and leave nothing there."""
    provider = SshHosts(folder / "state-of-ssh", _ENVIRONMENT)
    request = InstanceRequest(
        "uid", "host", "bench", {}, provider="ssh", endpoint={"hostname": "node1", "user": "root"}
    )
    try:
        await provider.ensure(request)
        host = await provider.connect(request, Identity(_ENVIRONMENT, "ledger", 1, 1), None)
        yield host
        await host.close()
        await provider.release(request)
    finally:
        await provider.close()


async def upload(folder: Path, host: Host, size_bytes: int) -> float:
    """Send a new content that does not compress, in bytes a second."""
    path = folder / "content"
    path.write_bytes(os.urandom(size_bytes))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    started = time.perf_counter()
    await host.put_blob(digest, str(path))
    return size_bytes / (time.perf_counter() - started)

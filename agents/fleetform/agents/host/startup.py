"""
From a root folder to a running agent: memory read, directories looked at, journal brought up.

Runs in the agent's own process, after the spawner has its lock: from then on each directory
tells the truth about its job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable

from fleetform.agents.host import VERSION, directory, identity, layout, memory, process_tag
from fleetform.agents.host.contact import Contact
from fleetform.agents.host.daemon import Daemon, Settings
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.memory import Memory
from fleetform.agents.host.recovery import recover
from fleetform.agents.host.storage import FileStore

_log = logging.getLogger("fleetform.agent")


def run(
    settings: Settings,
    channel: socket.socket,
    listening: Callable[[], None],
    *,
    is_reinstalled: bool,
) -> None:
    """
    Be the agent of this root until it ends. The root is the current directory.

    With `is_reinstalled` jobs of this root were ended of which nothing is known here: it is another install.
    """
    asyncio.run(_run(settings, channel, listening, is_reinstalled=is_reinstalled))


async def _run(
    settings: Settings,
    channel: socket.socket,
    listening: Callable[[], None],
    *,
    is_reinstalled: bool,
) -> None:
    for name in (layout.JOBS, layout.SPARE, layout.TRASH):
        os.makedirs(name, mode=0o700, exist_ok=True)
    store = FileStore(layout.JOURNAL)
    if store.torn:
        _log.warning("journal.torn bytes=%d", store.torn)
    boot_id = identity.boot_id(os.environ)
    known = _remember(store, is_reinstalled=is_reinstalled)
    journal = Journal(
        known,
        boot_id=boot_id,
        log_id=identity.mint(),
        version=VERSION,
        tag_base=process_tag.base(),
    )
    found = {name: directory.inspect(f"{layout.JOBS}/{name}") for name in os.listdir(layout.JOBS)}
    contact = Contact(boot_id)
    daemon = Daemon(settings, journal, store, channel, contact)
    effects = recover(journal, found, boot_id=boot_id, now_ms=_now_ms())
    try:
        await daemon.run(effects, listening)
    finally:
        contact.close()
        store.close()


def _remember(store: FileStore, *, is_reinstalled: bool) -> Memory:
    """Read the memory of an earlier agent, or begin an empty one where there is none of this machine."""
    entries = store.load()
    known = memory.restore(entries)
    if memory.has_requests(entries):
        store.rewrite(memory.snapshot(known))
    machine = identity.machine_id()
    if known.install_id and known.machine_id in {machine, ""}:
        if is_reinstalled:
            _log.warning("root.replaced: the processes of the earlier folder were ended")
            known.install_id = identity.mint()
            store.rewrite(memory.snapshot(known))
        return known
    if known.install_id:
        # This disk is a copy; the jobs that it tells of are another machine's.
        _log.warning("machine.changed from=%s to=%s", known.machine_id, machine)
        for name in os.listdir(layout.JOBS):
            os.rename(f"{layout.JOBS}/{name}", f"{layout.TRASH}/{name}.{identity.mint()}")
    fresh = Memory(install_id=identity.mint(), machine_id=machine)
    store.rewrite(memory.snapshot(fresh))
    return fresh


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""
The ledger as a whole: backed up, restored, and verified by itself and against its hosts.

A backup is taken beside whoever manages the environment. To restore one is to manage it: what is
there is kept in a backup first, or put aside where it cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.agents.protocol.states import JobState
from fleetform.app.clock import SystemClock
from fleetform.app.generations import note_generation
from fleetform.app.kept_ledger import keep_ledger, told
from fleetform.app.opening import host_provider, open_for_writing, prove_outgrown
from fleetform.app.problems import Problem
from fleetform.app.serving import locked
from fleetform.app.yielding import become_manager
from fleetform.model.redaction import short_uid
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.spec.private_folder import make_private_folder
from fleetform.store.backup import Head, read_head
from fleetform.store.reads import Reads
from fleetform.store.verifying import Flaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetform.agents.protocol.messages import JobRecord
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.ports import Book
    from fleetform.providers.contract.observed import HostSeen

__all__ = ["Restored", "Verified", "backup", "restore", "verify"]


@dataclass(frozen=True, slots=True)
class Restored:
    """
    What a restore came to. `kept` is the backup of what was there, or where it was put aside;
    empty where nothing was.
    """

    head: Head
    epoch: int
    kept: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What is wrong, and which hosts were asked; None: nobody asked hosts."""

    flaws: tuple[Flaw, ...]
    hosts: tuple[str, ...] | None = None


# -- backup ---------------------------------------------------------------------------------------


def backup(workspace: Workspace, path: Path, *, who: str) -> Head:
    """
    Write the whole ledger into `path`.

    Raises:
        Problem: Nothing has been applied yet, or `path` exists already.
        LedgerProblem: The ledger cannot be read.
    """
    if path.exists():
        raise Problem(f"{path} exists already", "name another file: a backup is never overwritten")
    reader = workspace.reader()
    if reader is None:
        raise Problem("nothing has been applied yet, so there is nothing to back up")
    assert isinstance(reader, Reads)
    with contextlib.closing(reader), told():
        return reader.backup(path, who=who, now_ms=SystemClock().now_ms())


# -- restore --------------------------------------------------------------------------------------


def restore(
    workspace: Workspace, path: Path, *, who: str, notice: Callable[[str], None]
) -> Restored:
    """
    Put the backup at `path` in the place of the ledger, which is kept first.

    `notice` is told which process is waited for, where one takes long to give its lease up.

    Raises:
        Problem: The file is no backup, not whole, or another environment's.
        Locked: Somebody manages the environment.
    """
    with told():
        head = read_head(path)
    if head.environment_uid != workspace.environment.uid:
        raise Problem(
            f"{path} is of environment {short_uid(head.environment_uid)}, not of"
            f" {short_uid(workspace.environment.uid)}",
            "restore it in the folder of its own environment",
        )
    make_private_folder(workspace.paths.environment)
    tenure = asyncio.run(become_manager(workspace, who=who, command="state restore", notice=notice))
    if tenure is None:
        raise locked(workspace)
    with tenure:
        kept = keep_ledger(workspace, who=who, before="restore")
        with contextlib.closing(open_for_writing(workspace)) as ledger:
            epoch = ledger.restore(path, who=who, now_ms=SystemClock().now_ms())
            note_generation(ledger)
    return Restored(head, epoch, kept)


# -- verify ---------------------------------------------------------------------------------------


def verify(workspace: Workspace, *, hosts: bool) -> Verified:
    """
    Look for what no sound ledger has, and with `hosts` for what its hosts know better.

    Raises:
        Problem: Nothing has been applied yet.
        LedgerProblem: The ledger cannot be opened; the message says what is wrong with it.
    """
    reader = workspace.reader()
    if reader is None:
        raise Problem("nothing has been applied yet, so there is nothing to verify")
    assert isinstance(reader, Reads)
    with contextlib.closing(reader):
        flaws = reader.flaws()
        if not hosts:
            return Verified(flaws)
        names, more = asyncio.run(_ask_hosts(workspace, reader))
        return Verified((*flaws, *more), names)


async def _ask_hosts(workspace: Workspace, reader: Reads) -> tuple[tuple[str, ...], list[Flaw]]:
    provider = host_provider(workspace)
    live, book = reader.read_live(), reader.read_book()
    instances = await provider.inventory(live.environment_uid)
    flaws = []
    if proof := prove_outgrown(instances, live, reader.read_live):
        flaws.append(
            Flaw("hosts", proof, "put the newest ledger back, or `fleetform state rebuild`")
        )
    known = {one.uid: one for one in live.instances}
    for instance in instances:
        row = known.get(instance.uid)
        if row is None:
            flaws.append(Flaw("hosts", f"host {instance.name} is not in the ledger", _TAKES_OVER))
            continue
        seen = await provider.observe(InstanceRequest(row.uid, row.name, row.fleet, row.declared))
        if seen is None:
            if not instance.resting:
                flaws.append(Flaw("hosts", f"host {row.name} does not answer", _ASK_AGAIN))
            continue
        uids = [record.key.run_uid for record in seen.records or ()]
        runs = reader.read_known_runs(uids)
        for record in seen.records or ():
            flaws.extend(_compare(row.name, record, runs, book))
        flaws.extend(_find_forgotten(row, seen, book))
    there = {one.uid for one in instances}
    flaws += [
        Flaw(
            "hosts",
            f"host {one.name} does not exist",
            "`fleetform apply --refresh` creates it again",
        )
        for one in live.instances
        if one.uid not in there and one.install_id
    ]
    return tuple(one.name for one in instances), flaws


def _find_forgotten(row: Instance, seen: HostSeen, book: Book) -> Iterator[Flaw]:
    """
    Find what this ledger has at work on a host that knows nothing of it.

    An agent writes down what it runs before it says so, and keeps it until it was told to forget.
    """
    if seen.records is None:
        return
    known = {record.key for record in seen.records}
    for uid, attempt in book.attempts.items():
        for job in attempt.jobs:
            begun = job.state in {JobState.RUNNING, JobState.CLEANING, JobState.UNKNOWN}
            if begun and job.instance_uid == row.uid and job.key not in known:
                name = book.runs[uid].name
                yield Flaw(
                    "hosts",
                    f"host {row.name} has no record of job {job.key.rank} of run {name}, which is"
                    f" {job.state} here: its folder was removed, or is an older copy",
                    "`fleetform apply` records that it is lost",
                )


_TAKES_OVER = "`fleetform state rebuild` adopts it with its running jobs"
_ASK_AGAIN = "start it again and verify again: its records were not compared"


def _compare(host: str, record: JobRecord, runs: frozenset[str], book: Book) -> list[Flaw]:
    """Compare one record with the row of its job, as far as that is not over."""
    if record.key.run_uid not in runs:
        return [
            Flaw(
                "hosts",
                f"host {host} has a job of run {record.run_name or record.key.run_uid}, which is"
                " not in the ledger",
                _TAKES_OVER,
            )
        ]
    jobs = [job for attempt in book.attempts.values() for job in attempt.jobs]
    for job in (*jobs, *book.lingering):
        if job.key == record.key and record.gen > job.gen:
            what = (
                f"host {host} has generation {record.gen} of job {job.key.rank} of"
                f" {record.run_name or job.key.run_uid}, and the ledger has {job.gen}"
            )
            return [Flaw("hosts", what, "put the newest ledger back, or `fleetform state rebuild`")]
    return []

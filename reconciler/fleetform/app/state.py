"""
The ledger as a whole: backed up, restored, and verified by itself and against its hosts.

A backup is taken while the manager of the environment goes on. To restore one is to manage it: what is
there is kept in a backup first, or put aside where it cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.agents.protocol.naming import short_uid
from fleetform.agents.protocol.states import JobState
from fleetform.app.clock import SystemClock
from fleetform.app.generations import note_generation
from fleetform.app.handover import become_manager
from fleetform.app.ledger import (
    backup_before,
    backup_problems,
    host_provider,
    keep_ledger,
    open_for_writing,
    prove_outgrown,
)
from fleetform.app.managing import problems
from fleetform.app.problems import LedgerProblem, Locked, Problem
from fleetform.app.serve import locked
from fleetform.model.instance import LOCAL, request_of
from fleetform.spec.private_folder import make_private_folder
from fleetform.store.backup import Head, read_head, write_backup
from fleetform.store.errors import OlderLedgerError
from fleetform.store.reads import Reads
from fleetform.store.verifying import Flaw
from fleetform.views.controllers import held_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleetform.agents.protocol.messages import JobRecord
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.leadership import ManagerLease
    from fleetform.model.scheduler_state import SchedulerState
    from fleetform.providers.contract.observed import HostSeen
    from fleetform.store.soundness import Upgraded
    from fleetform.store.statements import Statements


@dataclass(frozen=True, slots=True)
class Restored:
    """
    The outcome of a restore. `kept` is the backup of the earlier ledger, or where it was moved;
    empty where nothing was.
    """

    head: Head
    epoch: int
    kept: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What is wrong, and which hosts were asked; None: no hosts were asked."""

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
    with contextlib.closing(reader), backup_problems():
        return reader.backup(path, who=who, now_ms=SystemClock().now_ms())


# -- restore --------------------------------------------------------------------------------------


def restore(
    workspace: Workspace, path: Path, *, who: str, notice: Callable[[str], None]
) -> Restored:
    """
    Put the backup at `path` in the place of the ledger, which is kept first.

    `notice` gets which process is waited for, where one takes long to give its lease up.

    Raises:
        Problem: The file is no backup, not whole, or another environment's.
        Locked: Another process manages the environment.
    """
    with backup_problems():
        head = read_head(path)
    if head.environment_uid != workspace.environment.uid:
        raise Problem(
            f"{path} is of environment {short_uid(head.environment_uid)}, not of"
            f" {short_uid(workspace.environment.uid)}",
            "restore it in the folder of its own environment",
        )
    make_private_folder(workspace.paths.environment)
    manager_lease = asyncio.run(
        become_manager(workspace, who=who, command="state restore", notice=notice)
    )
    if manager_lease is None:
        raise locked(workspace)
    with manager_lease:
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
    flaws: list[Flaw] = []
    if proof := prove_outgrown(instances, live, reader.read_live):
        flaws.append(
            Flaw("hosts", proof, "put the newest ledger back, or `fleetform state rebuild`")
        )
    known = {one.uid: one for one in live.instances}
    flaws += [
        Flaw("hosts", f"host {one.name} is not in the ledger", _TAKES_OVER)
        for one in instances
        if one.uid not in known
    ]
    asked = [(known[one.uid], one.resting) for one in instances if one.uid in known]
    # What exists is listed on this machine alone; the others are asked by their endpoints.
    asked += [(one, False) for one in live.instances if one.provider != LOCAL and one.install_id]
    for row, is_resting in asked:
        seen = await provider.observe(request_of(row))
        if seen is None:
            if not is_resting:
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
        if one.uid not in there and one.install_id and one.provider == LOCAL
    ]
    elsewhere = (row.name for row, _ in asked if row.provider != LOCAL)
    return (*(one.name for one in instances), *elsewhere), flaws


def _find_forgotten(row: Instance, seen: HostSeen, book: SchedulerState) -> Iterator[Flaw]:
    """
    Find what this ledger has at work on a host that knows nothing of it.

    An agent writes down what it runs before it says so, and keeps it until it has to forget it.
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


def _compare(
    host: str, record: JobRecord, runs: frozenset[str], book: SchedulerState
) -> list[Flaw]:
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


# Upgrades the ledger of an environment that an earlier release wrote, as the first step of commands that write.

_COMMAND = "upgrade"
"""What the holder of the lock is called in `lock list` meanwhile."""

_LOOK_SECONDS = 0.05

_WAIT_SECONDS = 60.0
"""How long another process's upgrade is waited for: one of a million rows takes some seconds."""


def upgrade_if_older(workspace: Workspace, *, who: str) -> Upgraded | None:
    """
    Upgrade the ledger where an earlier release wrote it; None where there is nothing to upgrade.

    What else may be wrong with a ledger is left to the command, which meets it next.

    Raises:
        Locked: A process of the earlier release manages the environment.
        Problem: The backup cannot be written; nothing was changed.
        LedgerProblem: It cannot be upgraded; nothing was changed.
    """
    if not _is_older(workspace):
        return None
    keep = partial(_keep, workspace, who)
    uid, backend = workspace.environment.uid, workspace.backend()
    with problems():
        if backend.has_lease_in_ledger:
            # Only a ledger of this release has a lease that can be taken.
            if (holder := workspace.manager()) is not None:
                raise _managed(held_by(holder))
            return backend.upgrade(uid, keep)
        with _alone(workspace, who) as manager_lease:
            return backend.upgrade(uid, keep) if manager_lease else None


def _is_older(workspace: Workspace) -> bool:
    try:
        reader = workspace.reader()
    except LedgerProblem as problem:
        return isinstance(problem.__cause__, OlderLedgerError)
    if reader is not None:
        reader.close()
    return False


@contextlib.contextmanager
def _alone(workspace: Workspace, who: str) -> Iterator[ManagerLease | None]:
    """Hold the environment; None once another process has upgraded the ledger meanwhile."""
    until = time.monotonic() + _WAIT_SECONDS
    while (manager_lease := _take(workspace, who)) is None:
        if not _is_older(workspace):
            yield None
            return
        holder = workspace.manager()
        is_upgrading = holder is None or holder.command in {"", _COMMAND}
        if holder is not None and (not is_upgrading or time.monotonic() > until):
            raise _managed(held_by(holder))
        time.sleep(_LOOK_SECONDS)
    with manager_lease:
        yield manager_lease


def _take(workspace: Workspace, who: str) -> ManagerLease | None:
    """Take the lease, also from a background controller of the earlier release."""
    return asyncio.run(become_manager(workspace, who=who, command=_COMMAND, notice=lambda _: None))


def _managed(holder: str) -> Locked:
    return Locked(
        f"an earlier release of fleetform wrote the ledger, and {holder} manages the environment with it",
        "end that process, then run this command again: it upgrades the ledger after a backup",
    )


def _keep(workspace: Workspace, who: str, source: Statements, version: str) -> Path:
    return backup_before(
        workspace, f"upgrade-{version}", partial(write_backup, source, who=who, version=version)
    )

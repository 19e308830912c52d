"""A real agent in a folder of its own, somebody who manages it, and ways to hurt both."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from fleetform.agents.client.session import Session, open_session
from fleetform.agents.host import identity, launch
from fleetform.agents.protocol.messages import (
    Cursor,
    Event,
    Hello,
    JobKey,
    JobRecord,
    LogData,
    StartJob,
)
from fleetform.agents.protocol.states import JobState

WAIT_SECONDS = 60.0
"""For what takes a second: on a machine that does much else, a program takes ten to start."""

_RUN = "import sys; from fleetform.agents.host.main import main; sys.exit(main())"


class Agent:
    """One root folder and the daemons that it has had; ends what it started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment: dict[str, str] = {}
        self._supervisors: set[int] = set()

    def start(self, *, idle_exit: float = 0) -> str:
        """Start a daemon and return what the command printed; it listens then."""
        done = subprocess.run(
            [sys.executable, "-c", _RUN, "daemon", "--root", str(self.root), "--idle-exit", str(idle_exit)],
            env={**os.environ, **self.environment},
            capture_output=True,
            encoding="utf-8",
            timeout=WAIT_SECONDS,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + self.log()
        return done.stdout

    @property
    def pid(self) -> int:
        return int((self.root / "agent.pid").read_text())

    def kill(self) -> None:
        """End the daemon without warning, and wait until it is gone."""
        kill(self.pid)

    def job(self, job_uid: str) -> Path:
        return self.root / "jobs" / job_uid

    def supervisor(self, job_uid: str) -> int:
        """Return the pid of a job's supervisor, once it has one."""
        started = self.job(job_uid) / "started"
        await_true(lambda: started.exists() and launch.load_pid(started.read_bytes()))
        pid = launch.load_pid(started.read_bytes())
        assert pid is not None
        return pid

    def processes(self, job_uid: str, count: int) -> list[int]:
        """Return the processes of a job, once there are so many: a shell starts one after another."""
        supervisor = self.supervisor(job_uid)
        await_true(lambda: len(descendants(supervisor)) >= count)
        return descendants(supervisor)

    def log(self) -> str:
        path = self.root / "agent.log"
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        """End supervisors first, so that nothing of a job stays, and then the daemon."""
        for started in self.root.glob("jobs/*/started"):
            pid = launch.load_pid(started.read_bytes())
            if pid is not None and is_alive(pid) and _is_in(pid, self.root):
                children = descendants(pid)
                for each in (pid, *children):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
            if _is_in(self.pid, self.root):
                self.kill()


class Manager:
    """A session whose news is taken in as it comes."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events: list[Event] = []
        self.order: list[Event | LogData] = []
        self.ended = False
        self._output: dict[str, list[LogData]] = {}
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for batch in self.session.news():
            async with self._changed:
                for item in batch:
                    self.order.append(item)
                    if isinstance(item, Event):
                        self.events.append(item)
                    else:
                        self._output.setdefault(item.job_uid, []).append(item)
                self._changed.notify_all()
        async with self._changed:
            self.ended = True
            self._changed.notify_all()

    async def until(self, claim: Callable[[], Any], *, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the claim holds; news is when it is asked again."""
        async with asyncio.timeout(seconds):
            async with self._changed:
                await self._changed.wait_for(lambda: bool(claim()))

    async def record(
        self,
        job_uid: str,
        state: JobState = JobState.FINISHED,
        *,
        seconds: float = WAIT_SECONDS,
    ) -> JobRecord:
        """Wait for a job to be in this state, and at its end for its output; returns its record."""
        await self.until(lambda: self._find(job_uid, state), seconds=seconds)
        found = self._find(job_uid, state)
        assert found is not None
        if state is JobState.FINISHED and found.log_bytes:
            with contextlib.suppress(TimeoutError):
                # None comes where this connection never asked for it.
                await self.until(lambda: self.pieces(job_uid), seconds=2)
                await self.until(lambda: self.pieces(job_uid)[-1].complete, seconds=seconds)
        return found

    def _find(self, job_uid: str, state: JobState) -> JobRecord | None:
        for event in self.events:
            if event.record.job_uid == job_uid and event.record.state is state:
                return event.record
        return None

    def pieces(self, job_uid: str) -> list[LogData]:
        return self._output.get(job_uid, [])

    def output(self, job_uid: str) -> bytes:
        return b"".join(base64.b64decode(piece.data) for piece in self.pieces(job_uid))

    async def run(self, job: StartJob) -> JobRecord:
        """Start a job and wait for its end."""
        reply = await self.session.prepare(job)
        assert reply.ok, reply
        return await self.record(job.job_uid)

    async def acknowledge(self) -> None:
        await self.session.acknowledge(
            Cursor(self.session.welcome.log_id, self.events[-1].number if self.events else 0)
        )

    async def close(self) -> None:
        await self.session.close()
        await self._task


@contextlib.asynccontextmanager
async def managing(agent: Agent, **fields: Any) -> AsyncIterator[Manager]:
    """Connect as the environment's controller; `fields` are those of `Hello`."""
    manager = Manager(await dial(agent, **fields))
    try:
        yield manager
    finally:
        await manager.close()


async def dial(agent: Agent, **fields: Any) -> Session:
    hello = dataclasses.replace(Hello("environment", "ledger", 1, 1), **fields)
    folder = os.open(agent.root, os.O_RDONLY)
    try:
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/agent.sock")
    finally:
        os.close(folder)
    return await open_session(reader, writer, hello)


def uid(name: str) -> str:
    """
    Name a job as nobody else on this machine does.

    An agent ends all that bears the uid of a job whose supervisor is dead, so two tests that run
    at once and name their jobs alike would end each other's.
    """
    return f"job-{name}-{os.getpid()}"


def job(name: str, *commands: str, **fields: Any) -> StartJob:
    """Describe a job that starts at once; its uid and its run are named after it."""
    values: dict[str, Any] = {
        "job_uid": uid(name),
        "key": JobKey(name, 1, 0),
        "gen": 1,
        "boot_id": identity.boot_id(os.environ),
        "run_name": name,
        **({"commands": commands} if commands else {}),
        "stop_grace_seconds": 2,
        "go": True,
    }
    return StartJob(**{**values, **fields})


# -- processes --------------------------------------------------------------------------------


def kill(pid: int) -> None:
    """Kill a process of ours by its id, and wait until it is gone."""
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        assert ended.poll(WAIT_SECONDS * 1000), f"{pid} does not end"
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found.extend(map(int, (thread / "children").read_text().split()))
    return found[1:]


def await_true(claim: Callable[[], Any], *, seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline, "it has not become true in time"
        time.sleep(0.01)


def _is_in(pid: int, root: Path) -> bool:
    """Guard against a pid that is somebody else's by now."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(root)
    return False

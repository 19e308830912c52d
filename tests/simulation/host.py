"""
One simulated host: what stays when its agent dies, and what stays when its power goes.

The disk keeps the agent's store and the jobs' directories. Supervisors are the host's own and
outlive the agent. A power cut ends them all, takes what was not synced, and gives the host
another boot id.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from fleetform.agents.host.ending import Ending, Step
from fleetform.agents.host.launch import Launch
from fleetform.agents.host.recovery import Condition, Found
from fleetform.agents.host.result import Result
from fleetform.agents.protocol.host_report import GpuReport
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import Cause
from simulation.judge import Judge

WALL_START_MS = 1_700_000_000_000
"""Any moment will do; wall time is for display."""


@dataclass(slots=True)
class Script:
    """What a job's commands do: how long they take, and how they end."""

    seconds: float
    exit_code: int


@dataclass(slots=True)
class Directory:
    """One job's directory. `launch_synced` is drawn at a power cut: it may or may not be there."""

    job: StartJob
    digest: str
    complete: bool = False
    started: bool = False
    result: Result | None = None
    supervisor: asyncio.Task[None] | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    cause: Cause = Cause.STOPPED

    @property
    def held(self) -> bool:
        """Tell whether a supervisor holds the lock."""
        return self.supervisor is not None and not self.supervisor.done()


class Host:
    """Disk, clock and supervisors of one machine."""

    def __init__(
        self,
        name: str,
        *,
        source: random.Random,
        judge: Judge,
        cpu_millicores: int,
        script: Callable[[StartJob], Script],
    ) -> None:
        self.name = name
        self.cpu_millicores = cpu_millicores
        self.gpus: tuple[GpuReport, ...] = ()
        self.boot_id = f"{name}-boot-1"
        self.installs = 1
        self.install_id = f"{name}-install-1"
        self.boots = 1
        self.durable: list[bytes] = []
        self.unsynced: list[bytes] = []
        self.directories: dict[str, Directory] = {}
        self.on_end: Callable[[str], None] | None = None
        self.contact_ms = 0
        """As in `agents.host.contact`: by the clock `boot_ms`."""
        self._booted_at = 0.0
        self._random = source
        self._judge = judge
        self._script = script
        judge.host_exists(name, cpu_millicores)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        return WALL_START_MS + int(self.now() * 1000)

    def boot_ms(self) -> int:
        return int((self.now() - self._booted_at) * 1000)

    # -- the store of the agent ---------------------------------------------------------------

    def append(self, entry: bytes, *, sync: bool) -> None:
        self.unsynced.append(entry)
        if sync:
            self.durable += self.unsynced
            self.unsynced = []

    def entries(self) -> list[bytes]:
        return [*self.durable, *self.unsynced]

    # -- supervisors ----------------------------------------------------------------------------

    def start_supervisor(self, job_uid: str) -> bool:
        """Fork one; False when there is no directory to run in."""
        directory = self.directories.get(job_uid)
        if directory is None or not directory.complete:
            return False
        if directory.started or directory.held:
            # `started` is created exclusively and the lock is taken: a second one fails at both.
            return True
        directory.started = True
        directory.supervisor = asyncio.create_task(self._supervise(directory))
        return True

    async def _supervise(self, directory: Directory) -> None:
        job, started_ms = directory.job, self.now_ms()
        nodes = int(job.env.get("FLEETFORM_NODES_NUM", "1"))
        silence_ms = None if job.silence_seconds is None else job.silence_seconds * 1000
        ending = Ending(
            started_ms=self.boot_ms(),
            max_duration_ms=None,
            grace_ms=job.stop_grace_seconds * 1000,
            checkpoint_lead_ms=None,
            silence_ms=silence_ms,
        )
        ending.hear(self.contact_ms)
        if ending.is_silent(self.boot_ms()):
            cause, code = Cause.PREPARE_FAILED, 0
        else:
            port = job.env.get("FLEETFORM_MASTER_PORT")
            self._judge.began(self.now(), self.name, job.key, nodes, job.cpu_millicores, port)
            try:
                cause, code = await self._execute(directory, ending)
            except asyncio.CancelledError:
                # Killed, or the power went: its processes are dead and nobody writes a result.
                self._judge.ended(self.now(), self.name, job.key, None)
                raise
            self._judge.ended(self.now(), self.name, job.key, code)
        directory.result = Result(
            job_uid=job.job_uid,
            run_uid=job.key.run_uid,
            attempt=job.key.attempt,
            rank=job.key.rank,
            gen=job.gen,
            digest=directory.digest,
            cause=cause.value,
            exit_code=code if cause is Cause.EXITED else None,
            signal=None if cause is Cause.EXITED else 15,
            message="",
            started_at_ms=started_ms,
            finished_at_ms=self.now_ms(),
            peak_memory_bytes=None,
            cpu_time_ms=None,
            log_bytes=0,
        )
        # Whoever reaps it hears of it when the lock is free.
        asyncio.get_running_loop().call_soon(self._tell_end, job.job_uid)

    async def _execute(self, directory: Directory, ending: Ending) -> tuple[Cause, int]:
        """Let the commands run; they obey a stop at once, and after a silence only to KILL."""
        script = self._script(directory.job)
        until = self.now() + script.seconds
        while True:
            wait_ms = ending.wait_ms(self.boot_ms())
            seconds = until - self.now()
            if wait_ms is not None:
                # One more, or it would wake up before the moment that it waits for.
                seconds = min(seconds, (wait_ms + 1) / 1000)
            try:
                async with asyncio.timeout(seconds):
                    await directory.stop.wait()
            except TimeoutError:
                pass
            else:
                return directory.cause, -15
            if self.now() >= until:
                return Cause.EXITED, script.exit_code
            ending.hear(self.contact_ms)
            ending.end_silence(self.boot_ms())
            while (step := ending.due(self.boot_ms())) is not None:
                if step is Step.KILL:
                    assert ending.cause is not None
                    return ending.cause, -9

    def kill_supervisor(self, job_uid: str) -> None:
        directory = self.directories.get(job_uid)
        if directory is not None and directory.supervisor is not None:
            directory.supervisor.cancel()
            directory.supervisor.add_done_callback(lambda _: self._tell_end(job_uid))

    def running(self) -> list[str]:
        return [uid for uid, directory in self.directories.items() if directory.held]

    def _tell_end(self, job_uid: str) -> None:
        if self.on_end is not None:
            self.on_end(job_uid)

    # -- what a new agent finds -----------------------------------------------------------------

    def found(self) -> dict[str, Found]:
        return {uid: self._look(directory) for uid, directory in self.directories.items()}

    def _look(self, directory: Directory) -> Found:
        launch = launch_of(directory.job, directory.digest)
        if directory.result is not None:
            return Found(Condition.ENDED, launch, directory.result)
        if directory.held:
            return Found(Condition.RUNNING, launch)
        if directory.started:
            return Found(Condition.ABANDONED, launch)
        return Found(Condition.PREPARED if directory.complete else Condition.INCOMPLETE, launch)

    # -- the power goes ---------------------------------------------------------------------------

    def cut_power(self) -> None:
        """Everything dies; what was not synced may be gone."""
        for directory in self.directories.values():
            if directory.held and directory.supervisor is not None:
                directory.supervisor.cancel()
        kept = self._random.randint(0, len(self.unsynced))
        self.durable += self.unsynced[:kept]
        self.unsynced = []
        for uid, directory in list(self.directories.items()):
            if directory.result is None and self._random.random() < 0.5:
                # Its files were never synced; its result would have been.
                del self.directories[uid]
        self.contact_ms, self._booted_at = 0, self.now()
        self.boots += 1
        self.boot_id = f"{self.name}-boot-{self.boots}"

    def wipe(self) -> None:
        """Forget everything, as a folder that is deleted: the next agent here is installed anew."""
        for directory in self.directories.values():
            if directory.held and directory.supervisor is not None:
                directory.supervisor.cancel()
        self.directories.clear()
        self.durable, self.unsynced = [], []
        self.contact_ms = 0
        self.installs += 1
        self.install_id = f"{self.name}-install-{self.installs}"


def launch_of(job: StartJob, digest: str) -> Launch:
    """What a directory says of its job; nothing is executed, so how is left open."""
    return Launch(
        job_uid=job.job_uid,
        run_uid=job.key.run_uid,
        attempt=job.key.attempt,
        rank=job.key.rank,
        gen=job.gen,
        digest=digest,
        executable="",
        argv=[],
        env={},
        directory="",
        binds=[],
        memory_bytes=None,
        memory_limit="",
        max_duration_ms=None,
        grace_ms=0,
        checkpoint_signal=None,
        checkpoint_lead_ms=0,
        log_head_bytes=0,
        log_tail_bytes=0,
    )

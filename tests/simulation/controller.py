"""
Lives of the manager: the real one, behind a gate where it may be killed.

A life ends before a transaction, or after its commit and before its reply. Whatever the dead
process still had under way is cut off: its gate refuses and its connections are gone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TypeVar, Unpack

from fleetform.controllers.manager import LoadPlan, Manager
from fleetform.model.history import NoticeFacts
from fleetform.model.plan import Plan, Step
from fleetform.model.ports import Ledger, Progress
from fleetform.model.run import Run
from fleetform.providers.contract.hosts import Identity
from simulation.host import WALL_START_MS
from simulation.judge import Judge
from simulation.provider import SimulatedHosts

T = TypeVar("T")


class Crashed(Exception):
    """The manager's process was killed."""


class VirtualClock:
    """Implements `model.ports.Clock` on the running loop."""

    def now_ms(self) -> int:
        return WALL_START_MS + self.boot_ms()

    def boot_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)


class SeededIds:
    """Implements `model.ports.Ids` from a seed."""

    def __init__(self, source: random.Random) -> None:
        self._random = source

    def uid(self) -> str:
        return f"{self._random.getrandbits(128):032x}"


class CrashingGate:
    """Runs calls inline after a delay; `crash` is the share of calls that kill the process."""

    def __init__(self, source: random.Random, judge: Judge, crash: Callable[[], float]) -> None:
        self._random = source
        self._judge = judge
        self._crash = crash
        self._turn = asyncio.Lock()
        self.dead = False

    async def __call__(self, call: Callable[[], T], /) -> T:
        # In order, as the writer's thread takes them.
        async with self._turn:
            await asyncio.sleep(self._random.uniform(0, 0.01))
            self._maybe_die("before a transaction")
            result = call()
            self._maybe_die("after a commit, before its reply")
            return result

    def _maybe_die(self, where: str) -> None:
        if self.dead:
            raise Crashed
        if self._random.random() < self._crash():
            self.dead = True
            self._judge.fault(asyncio.get_running_loop().time(), "manager crash", where)
            raise Crashed


class Silent:
    """Implements `model.ports.Progress` for nobody."""

    def step_started(self, step: Step) -> None: ...
    def step_finished(self, step: Step, error: str) -> None: ...
    def run_changed(self, run: Run, message: str) -> None: ...
    def output(self, run_name: str, rank: int, data: bytes) -> None: ...
    def plan_finished(self, plan: Plan, state: str) -> None: ...
    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None: ...


class NoLogs:
    """Implements `model.ports.LogStore`: simulated jobs write nothing."""

    def size(self, run_uid: str, attempt: int, rank: int) -> int:
        return 0

    def append(
        self, run_uid: str, attempt: int, rank: int, offset: int, data: bytes, *, complete: bool
    ) -> None: ...

    def is_complete(self, run_uid: str, attempt: int, rank: int) -> bool:
        return True

    def read(
        self, run_uid: str, attempt: int, rank: int, offset: int, limit_bytes: int
    ) -> tuple[bytes, int]:
        return b"", offset


class NoBlobs:
    """Implements `model.ports.BlobStore`: simulated jobs have no files."""

    def path(self, sha256: str) -> str:
        return sha256

    def put_file(self, sha256: str, path: str) -> None: ...


class Lives:
    """One manager after another until the work is done."""

    def __init__(
        self,
        ledger: Ledger,
        hosts: SimulatedHosts,
        *,
        source: random.Random,
        judge: Judge,
        crash: Callable[[], float],
        load_plan: LoadPlan,
        progress: Progress | None = None,
    ) -> None:
        self.lives = 0
        self.manager: Manager | None = None
        self._ledger = ledger
        self._hosts = hosts
        self._random = source
        self._judge = judge
        self._crash = crash
        self._load_plan = load_plan
        self._progress = progress or Silent()

    def written_elsewhere(self) -> None:
        """
        Let the manager of the day see a write of somebody else.

        SQLite tells connections apart, and here is only one.
        """
        if self.manager is not None:
            self.manager.written_elsewhere()

    async def live(self, finished: Callable[[Manager], bool]) -> None:
        """Manage until `finished`, being born again after each crash."""
        while True:
            self.lives += 1
            gate = CrashingGate(self._random, self._judge, self._crash)
            clock = VirtualClock()
            fence = self._ledger.take_fence(who=f"life {self.lives}", now_ms=clock.now_ms())
            live = self._ledger.read_live()
            self.manager = Manager(
                provider=self._hosts,
                identity=Identity(live.environment_uid, live.ledger_id, live.epoch, fence),
                ledger=self._ledger,
                gate=gate,
                logs=NoLogs(),
                blobs=NoBlobs(),
                clock=clock,
                progress=self._progress,
                load_plan=self._load_plan,
                # Nobody else has a connection; see `written_elsewhere`.
                poll_seconds=1.0,
            )
            try:
                await self.manager.run(finished)
            except Crashed:
                self.manager = None
                for name in self._hosts.hosts:
                    self._hosts.reset_connections(name)
                await asyncio.sleep(self._random.uniform(0, 2.0))
            else:
                return

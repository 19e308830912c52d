"""Takes hosts out of use on which run after run fails, and back after a while; see `host_health`."""

from __future__ import annotations

from fleetform.controllers.host_health import Suspicion
from fleetform.controllers.mirror import Mirror
from fleetform.model.instance import InstanceState
from fleetform.model.notice import LogLevel
from fleetform.model.ports import Clock, Gate, Ledger, Progress
from fleetform.model.run import Attempt, Run


class Suspects:
    """What `Suspicion` says, written down."""

    def __init__(
        self, *, ledger: Ledger, gate: Gate, clock: Clock, progress: Progress, fence: int
    ) -> None:
        self._ledger = ledger
        self._fence = fence
        self._gate = gate
        self._clock = clock
        self._progress = progress
        self._suspicion = Suspicion()
        self._blamed: dict[str, None] = {}

    def greeted(self, instance_uid: str) -> None:
        self._suspicion.greeted(instance_uid, now_ms=self._clock.now_ms())

    def note(self, run: Run, attempt: Attempt, *, now_ms: int) -> None:
        """Take in an attempt that is over."""
        self._blamed.update(dict.fromkeys(self._suspicion.note(run, attempt, now_ms=now_ms)))

    async def mark(self, mirror: Mirror) -> None:
        """Bring the instances' rows up to what has been noted and to the time."""
        now_ms = self._clock.now_ms()
        marks = [
            (uid, InstanceState.READY, "") for uid in self._suspicion.take_pardoned(now_ms=now_ms)
        ]
        blamed, self._blamed = self._blamed, {}
        ready = [one for one in mirror.instances if one.state is InstanceState.READY]
        for instance in ready if blamed else ():
            if instance.uid not in blamed:
                continue
            others = [one.uid for one in ready if one.fleet == instance.fleet]
            why = self._suspicion.judge(instance.uid, others, now_ms=now_ms)
            if why:
                self._progress.notice(
                    f"host {instance.name} is suspect: {why}",
                    event="host.suspect",
                    level=LogLevel.WARNING,
                    details={"host": instance.name},
                )
                marks.append((instance.uid, InstanceState.SUSPECT, why))
        for uid, state, message in marks:
            await self._mark(uid, state, message, now_ms)
        if marks:
            mirror.merge((), await self._gate(lambda: self._ledger.read_book(())))

    async def _mark(self, uid: str, state: InstanceState, message: str, now_ms: int) -> None:
        await self._gate(
            lambda: self._ledger.mark_instance(
                uid, state=state, message=message, fence=self._fence, now_ms=now_ms
            )
        )

"""
Jobs on this host, as far as something has to be done or looked at: directories, supervisors,
and what is left of a job whose supervisor is dead.

Each thing seen goes to the journal, and what the journal wants done comes back as effects.
Paths are relative: the agent's root is the current directory.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Protocol

from fleetform.agents.host import directory, layout
from fleetform.agents.host.effects import Effect, SignalStop, StartPreparing
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.outbox import Outbox
from fleetform.agents.host.recovery import Condition
from fleetform.agents.host.runtimes.base import Listener, PrepareError, Runtime
from fleetform.agents.protocol.states import JobState

_log = logging.getLogger("fleetform.agent")

_TELL_AGAIN_SECONDS = 0.02
"""A supervisor that has just been forked opens its FIFO within milliseconds."""

_TRIES_BEFORE_REPAIR = 50
"""A second of them: the job has removed the FIFO, most likely."""

_LOOK_AGAIN_SECONDS = 5.0
"""A person may end by hand what this agent must not: that shows soon, and a look costs 10 ms."""


class Stage(Protocol):
    """
    Where jobs play: `perform` carries effects out, `begin` runs a task, `end` ends the agent.
    `outbox` is that of whoever manages this host; None while nobody does.
    """

    @property
    def outbox(self) -> Outbox | None: ...
    def perform(self, effects: Iterable[Effect]) -> None: ...
    def begin(self, work: Coroutine[Any, Any, None]) -> None: ...
    def end(self) -> None: ...


class Jobs:
    """What a runtime reports of jobs comes here."""

    def __init__(self, journal: Journal, runtime: Runtime, stage: Stage) -> None:
        self._journal = journal
        self._runtime = runtime
        self._stage = stage
        self._loop = asyncio.get_running_loop()
        self._exits: dict[str, tuple[str, Sequence[int] | None]] = {}
        runtime.listen(Listener(self._started, self._refused, self._exited, self._runtime_gone))

    # -- preparing ------------------------------------------------------------------------------

    def prepare(self, effect: StartPreparing) -> None:
        if self._stage.outbox is not None:
            # Whoever asks for a job gets its output without asking for that too.
            self._stage.outbox.follow(effect.job.job_uid, 0)
        if effect.job.files or effect.job.bundle or effect.job.account:
            # Copying takes as long as the files are large, and a user database may be a directory
            # service: others wait for this loop.
            self._stage.begin(self._prepare_aside(effect))
        else:
            self._prepared(effect, self._try_prepare(effect))

    async def _prepare_aside(self, effect: StartPreparing) -> None:
        error = await self._loop.run_in_executor(None, self._try_prepare, effect)
        self._prepared(effect, error)

    def _prepared(self, effect: StartPreparing, error: str) -> None:
        uid = effect.job.job_uid
        if error:
            self._stage.perform(self._journal.prepare_failed(uid, error, now_ms()))
        else:
            self._stage.perform(self._journal.prepared(uid))

    def _try_prepare(self, effect: StartPreparing) -> str:
        """Prepare, and return why it failed; empty when it has not."""
        try:
            self._runtime.prepare(effect.job, effect.digest)
        except PrepareError as error:
            return str(error)
        return ""

    # -- supervisors ----------------------------------------------------------------------------

    def _started(self, job_uid: str) -> None:
        self._stage.perform(self._journal.supervisor_started(job_uid, now_ms()))

    def _refused(self, job_uid: str, reason: str) -> None:
        if self._runtime.inspect(job_uid).condition is not Condition.PREPARED:
            # Its start had been asked for before, by an agent that is gone.
            self._look_after(job_uid)
            return
        message = f"the host cannot start a supervisor: {reason}"
        self._stage.perform(self._journal.supervisor_refused(job_uid, message, now_ms()))

    def _exited(self, job_uid: str, message: str, left: Sequence[int]) -> None:
        self._exits[job_uid] = message, left
        self._look_after(job_uid)

    def _runtime_gone(self) -> None:
        # A new one would be a fork of this process, with all that it has mapped. Jobs go on
        # without either, and the next agent finds them.
        _log.error("spawner.gone")
        self._stage.end()

    def watch(self, job_uid: str) -> None:
        self._runtime.attach(job_uid, lambda: self._look_after(job_uid))

    def notice(self, kind: str, job_uid: str) -> None:
        """Receive an unrequested message of a supervisor."""
        if kind == "cleaning":
            self._stage.perform(self._journal.supervisor_cleaning(job_uid))
        elif self._stage.outbox is not None:
            self._stage.outbox.touch(job_uid)

    def signal_stop(self, effect: SignalStop, tries: int = 1) -> None:
        record = self._journal.find(effect.job_uid)
        if record is None or record.state in {JobState.UNKNOWN, JobState.FINISHED}:
            return
        try:
            told = self._runtime.stop(effect.job_uid, effect.cause, effect.grace_seconds)
        except OSError as error:
            _log.warning("stop.failed uid=%s error=%s", effect.job_uid, error)
            told = False
        if told:
            return
        if tries % _TRIES_BEFORE_REPAIR == 0:
            self._loop.run_in_executor(None, self._runtime.repair, effect.job_uid)
        self._loop.call_later(_TELL_AGAIN_SECONDS, self.signal_stop, effect, tries + 1)

    # -- ends -----------------------------------------------------------------------------------

    def _look_after(self, job_uid: str) -> None:
        """A supervisor has ended: find out what became of its job."""
        ended = self._runtime.result(job_uid)
        if ended is not None:
            self._exits.pop(job_uid, None)
            self._stage.perform(self._journal.supervisor_ended(ended))
        elif self._runtime.inspect(job_uid).condition is Condition.RUNNING:
            # Another supervisor was there first, and the one that has ended was superfluous.
            self._exits.pop(job_uid, None)
            self._stage.perform(self._journal.supervisor_started(job_uid, now_ms()))
            self.watch(job_uid)
        else:
            self._stage.perform(self._journal.supervisor_vanished(job_uid))

    async def kill_leftovers(self, job_uid: str) -> None:
        """End what is left of a job without a supervisor; look again as long as that is unproven."""
        if await self._loop.run_in_executor(None, self._runtime.is_supervised, job_uid):
            self._look_after(job_uid)
            return
        message, orphans = self._exits.get(job_uid, ("its supervisor no longer runs", None))
        tag = self._journal.tag_of(job_uid)
        doubt = await self._loop.run_in_executor(
            None, self._runtime.end_leftovers, job_uid, tag, orphans
        )
        if doubt:
            _log.error("job.unproven uid=%s %s", job_uid, doubt)
            self._stage.perform(self._journal.unproven(job_uid, f"{message}, and {doubt}"))
            self._loop.call_later(_LOOK_AGAIN_SECONDS, self._look_again, job_uid)
            return
        self._exits.pop(job_uid, None)
        count = directory.log_bytes(_path(job_uid))
        self._stage.perform(self._journal.lost(job_uid, message, count, now_ms()))

    def _look_again(self, job_uid: str) -> None:
        self._stage.perform(self._journal.supervisor_vanished(job_uid))


def now_ms() -> int:
    """Return Unix time, for tombstones and display."""
    return time.time_ns() // 1_000_000


def _path(job_uid: str) -> str:
    return f"{layout.JOBS}/{job_uid}"

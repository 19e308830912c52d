"""
The agent's shell: sockets, files and clocks around the journal, which decides everything.

One turn of the loop is one transaction: whatever came in is handled, what it changed is written
to the store in one go, and only then do answers, events and requests to the spawner leave. So
nobody ever hears of something that a crash of this process could undo.

The current directory is the agent's root, for as long as it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from fleetform.agents.host import (
    control,
    directory,
    layout,
    limits,
    memory,
    processes,
    result,
    watch,
)
from fleetform.agents.host.connection import Connection
from fleetform.agents.host.effects import (
    Announce,
    Effect,
    KillLeftovers,
    Persist,
    RemoveJobDirectory,
    Send,
    SignalStop,
    StartPreparing,
    StartSupervisor,
    WatchSupervisor,
)
from fleetform.agents.host.forks import Forks, describe_exit
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.recovery import Condition
from fleetform.agents.host.requests import Requests
from fleetform.agents.host.result import Result
from fleetform.agents.host.runtimes import process
from fleetform.agents.host.skeletons import Skeletons
from fleetform.agents.host.storage import FileStore
from fleetform.agents.host.sweeper import Sweeper
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.messages import (
    Acknowledge,
    Event,
    FollowLog,
    Forget,
    Hello,
    LogData,
    Prepare,
    Probe,
    Rejected,
    Reply,
    Shutdown,
    Start,
    Stop,
)
from fleetform.agents.protocol.states import JobState

_log = logging.getLogger("fleetform.agent")

_TELL_AGAIN_SECONDS = 0.02
"""A supervisor that has just been forked opens its FIFO within milliseconds."""

_LEFTOVERS_PATIENCE_SECONDS = 30
"""A process in an uninterruptible sleep may never die; the job is lost all the same."""

_HOUSEKEEPING_SECONDS = 3600.0


@dataclass(frozen=True)
class Settings:
    """`root` is absolute; `idle_exit_seconds` is None for an agent that stays for good."""

    root: str
    idle_exit_seconds: float | None
    mounts_obstacle: str
    limits: tuple[str, ...]


class Daemon:
    """Carries out what the journal wants, and tells it what has happened."""

    def __init__(
        self, settings: Settings, journal: Journal, store: FileStore, channel: socket.socket
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._journal = journal
        self._store = store
        self._forks = Forks(channel, self)
        skeletons = Skeletons(settings.root)
        self._sweeper = Sweeper(skeletons)
        self._host = process.Host(
            settings.root, skeletons, settings.mounts_obstacle, settings.limits[0]
        )
        self._requests = Requests(settings.root, settings.limits)
        self._connections: list[Connection] = []
        self._manager: Connection | None = None
        self._turn_waits = False
        self._idle_since = self._loop.time()
        self._ended = asyncio.Event()
        self._shutting_down = False
        self._exits: dict[str, str] = {}
        # asyncio itself holds tasks by weak references only.
        self._tasks: list[asyncio.Task[None]] = []

    # -- life -------------------------------------------------------------------------------

    async def run(self, recovered: Iterable[Effect], listening: Callable[[], None]) -> None:
        """Serve until told to end, or idle for long enough; calls `listening` once reachable."""
        notices = _bind(layout.NOTICE_SOCKET, socket.SOCK_DGRAM)
        self._loop.add_reader(notices, self._take_notices, notices)
        self._perform(recovered)
        self._turn()
        listener = _bind(layout.AGENT_SOCKET, socket.SOCK_STREAM)
        jobs = f"{self._settings.root}/{layout.JOBS}"
        server = await self._loop.create_unix_server(
            lambda: Connection(self, jobs), sock=listener, backlog=64
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._ended.set)
        self._watch_idleness()
        self._keep_house()
        listening()
        _log.info("agent.listening pid=%d", os.getpid())
        await self._ended.wait()
        server.close()
        self._close(notices)
        # One more round, so that what was said last leaves.
        await asyncio.sleep(0)
        _log.info("agent.ended pid=%d", os.getpid())

    def _close(self, notices: socket.socket) -> None:
        self._turn()
        for connection in list(self._connections):
            connection.close()
        self._loop.remove_reader(notices)
        notices.close()
        self._forks.close()
        self._sweeper.close()
        for name in (layout.AGENT_SOCKET, layout.NOTICE_SOCKET, layout.AGENT_PID):
            with contextlib.suppress(OSError):
                os.unlink(name)

    def _watch_idleness(self) -> None:
        patience = self._settings.idle_exit_seconds
        if patience is None:
            return
        now = self._loop.time()
        if self._connections or self._journal.has_live_jobs():
            self._idle_since = now
        elif now - self._idle_since >= patience:
            _log.info("agent.idle seconds=%d", patience)
            self._ended.set()
            return
        self._loop.call_later(min(max(patience / 4, 0.05), 15), self._watch_idleness)

    def _keep_house(self) -> None:
        self._perform(self._journal.expire(_now_ms()))
        self._turn()
        if self._store.long:
            self._store.rewrite(memory.snapshot(self._journal.memory))
        self._loop.call_later(_HOUSEKEEPING_SECONDS, self._keep_house)

    # -- turns --------------------------------------------------------------------------------

    def _plan_turn(self) -> None:
        """Have what was decided written and said, once for all that comes in meanwhile."""
        if not self._turn_waits:
            self._turn_waits = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_waits = False
        more = self._manager is not None and self._manager.outbox.pump()
        try:
            self._store.commit()
        except OSError as error:
            # A full disk. What is in force is in memory, and each job's directory says most of
            # it again; the entries are tried again with the next turn.
            _log.error("journal.unwritten error=%s", error)  # The trace says no more.
        self._forks.flush()
        for connection in self._connections:
            connection.outbox.flush()
        if more:
            self._plan_turn()

    def _perform(self, effects: Iterable[Effect], connection: Connection | None = None) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self._store.append(effect.entry, sync=effect.sync)
            elif isinstance(effect, Send):
                assert connection is not None
                connection.outbox.say(effect.reply)
            elif isinstance(effect, Announce):
                self._announce(effect.event)
            elif isinstance(effect, StartPreparing):
                self._prepare(effect)
            elif isinstance(effect, StartSupervisor):
                self._forks.request(effect.job_uid)
            elif isinstance(effect, WatchSupervisor):
                self._watch(effect.job_uid)
            elif isinstance(effect, SignalStop):
                self._signal_stop(effect)
            elif isinstance(effect, KillLeftovers):
                self._begin(self._kill_leftovers(effect.job_uid))
            else:
                assert isinstance(effect, RemoveJobDirectory), effect
                self._sweeper.take(effect.job_uid)
        self._plan_turn()

    def _announce(self, event: Event) -> None:
        if self._shutting_down and not self._journal.has_live_jobs():
            self._ended.set()
        if self._manager is None:
            return
        if event.record.state is JobState.FINISHED:
            # Where there was output this has been said already; where nothing ran, it has not.
            self._manager.outbox.cut(event.record.job_uid)
        self._manager.outbox.say(event)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    # -- connections ----------------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        self._connections.append(connection)

    def writable(self, connection: Connection) -> None:
        self._plan_turn()

    def disconnected(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
        self._idle_since = self._loop.time()
        waiting = connection.outbox.close()
        if connection is self._manager:
            self._manager = None
        for then in waiting:
            then()

    def received(self, connection: Connection, message: Message) -> None:
        if isinstance(message, Hello):
            self._greet(connection, message)
        elif isinstance(message, Probe):
            self._begin(self._answer(connection, message))
        elif connection is not self._manager:
            connection.outbox.say(Rejected("protocol", "say hello first"))
            connection.close()
        elif isinstance(message, (Prepare, Start, Stop, Forget, Acknowledge)):
            self._obey(connection, message)
        elif isinstance(message, FollowLog):
            self._follow(connection, message)
        elif isinstance(message, Shutdown):
            self._shut_down(connection, message)
        elif self._requests.knows(message):
            self._begin(self._answer(connection, message))
        else:
            _log.warning("connection.garbled type=%s", type(message).__name__)
            connection.close()
        self._plan_turn()

    def _greet(self, connection: Connection, hello: Hello) -> None:
        answer, effects = self._journal.hello(hello)
        self._perform(effects)
        connection.outbox.say(answer)
        if isinstance(answer, Rejected):
            _log.warning("hello.rejected code=%s", answer.code)
            # What goes out must be true, and so written, before it does.
            self._turn()
            connection.close()
            return
        if hello.look:
            return
        for event in self._journal.news_for(hello):
            connection.outbox.say(event)
        former, self._manager = self._manager, connection
        if former is not None and former is not connection:
            self._dismiss(former, hello)

    def _dismiss(self, former: Connection, hello: Hello) -> None:
        """One speaks at a time: the newest of those with the highest fence."""
        message = "somebody else manages this host now"
        former.outbox.say(
            Rejected("old_fence", message, self._journal.owner, hello.ledger_id, hello.epoch)
        )
        self._turn()
        waiting = former.outbox.close()
        former.close()
        for then in waiting:
            then()

    def _obey(
        self, connection: Connection, command: Prepare | Start | Stop | Forget | Acknowledge
    ) -> None:
        if self._shutting_down and isinstance(command, (Prepare, Start)):
            reply = Reply(command.id, False, "busy", "the agent is shutting down")
            connection.outbox.say(reply)
            return
        self._perform(self._journal.handle(command, _now_ms()), connection)

    def _follow(self, connection: Connection, command: FollowLog) -> None:
        record = self._journal.find(command.job_uid)
        if record is None:
            # Forgotten, so all of it has been taken in before.
            connection.outbox.say(LogData(command.job_uid, command.offset, "", complete=True))
            return
        connection.outbox.follow(command.job_uid, command.offset)
        if record.state is JobState.FINISHED:
            connection.outbox.end(command.job_uid, record.log_bytes, None)

    def _shut_down(self, connection: Connection, command: Shutdown) -> None:
        live = self._journal.has_live_jobs()
        if live and not command.force:
            message = "jobs are running here: stop them, or force"
            connection.outbox.say(Reply(command.id, False, "busy", message))
            return
        connection.outbox.say(Reply(command.id, True))
        self._shutting_down = True
        self._perform(self._journal.stop_all(_now_ms()))
        if not self._journal.has_live_jobs():
            self._ended.set()

    async def _answer(self, connection: Connection, message: Message) -> None:
        connection.outbox.say(await self._requests.answer(message, self._journal.owner or ""))
        self._plan_turn()

    # -- jobs -----------------------------------------------------------------------------------

    def _path(self, job_uid: str) -> str:
        return f"{layout.JOBS}/{job_uid}"

    def _prepare(self, effect: StartPreparing) -> None:
        if self._manager is not None:
            self._manager.outbox.follow(effect.job.job_uid, 0)
        if effect.job.files:
            # Copying takes as long as the files are large, and others wait for this loop.
            self._begin(self._prepare_aside(effect))
        else:
            self._prepared(effect, _try_prepare(effect, self._host))

    async def _prepare_aside(self, effect: StartPreparing) -> None:
        error = await self._loop.run_in_executor(None, _try_prepare, effect, self._host)
        self._prepared(effect, error)

    def _prepared(self, effect: StartPreparing, error: str) -> None:
        uid = effect.job.job_uid
        if error:
            self._perform(self._journal.prepare_failed(uid, error, _now_ms()))
        else:
            self._perform(self._journal.prepared(uid))

    def forked(self, job_uid: str) -> None:
        self._perform(self._journal.supervisor_started(job_uid, _now_ms()))

    def not_forked(self, job_uid: str, reason: str) -> None:
        if directory.inspect(self._path(job_uid)).condition is not Condition.PREPARED:
            # Its start had been asked for before, by an agent that is gone.
            self._look_after(job_uid)
            return
        message = f"the host cannot start a supervisor: {reason}"
        self._perform(self._journal.supervisor_refused(job_uid, message, _now_ms()))

    def exited(self, job_uid: str, status: int) -> None:
        self._exits[job_uid] = describe_exit(status)
        self._look_after(job_uid)

    def spawner_gone(self) -> None:
        # A new one would be a fork of this process, with all that it has mapped. Jobs go on.
        _log.error("spawner.gone")
        self._ended.set()

    def _watch(self, job_uid: str) -> None:
        watch.watch(self._path(job_uid), lambda: self._look_after(job_uid))

    def _look_after(self, job_uid: str) -> None:
        """A supervisor has ended: find out what became of its job."""
        ended = result.read(f"{self._path(job_uid)}/{layout.RESULT}", job_uid)
        if ended is not None:
            self._exits.pop(job_uid, None)
            self._ended_as(job_uid, ended.log_bytes, lambda: self._take_result(ended))
            return
        if directory.inspect(self._path(job_uid)).condition is Condition.RUNNING:
            # Another supervisor was there first, and the one that has ended was superfluous.
            self._perform(self._journal.supervisor_started(job_uid, _now_ms()))
            self._watch(job_uid)
            return
        self._perform(self._journal.supervisor_vanished(job_uid))

    def _take_result(self, ended: Result) -> None:
        self._perform(self._journal.supervisor_ended(ended))

    async def _kill_leftovers(self, job_uid: str) -> None:
        left = await self._loop.run_in_executor(None, _clear, job_uid)
        message = self._exits.pop(job_uid, "its supervisor is gone")
        if left:
            message += f"; these of its processes would not die: {', '.join(map(str, left))}"
            _log.error("job.leftovers uid=%s pids=%s", job_uid, left)
        count = directory.log_bytes(self._path(job_uid))
        self._ended_as(
            job_uid,
            count,
            lambda: self._perform(self._journal.lost(job_uid, message, count, _now_ms())),
        )

    def _ended_as(self, job_uid: str, log_bytes: int, then: Callable[[], None]) -> None:
        """Take the end in once the output is on its way; at once where nobody follows it."""
        if self._manager is not None and self._manager.outbox.follows(job_uid):
            self._manager.outbox.end(job_uid, log_bytes, then)
        else:
            then()
        self._plan_turn()

    def _signal_stop(self, effect: SignalStop) -> None:
        record = self._journal.find(effect.job_uid)
        if record is None or record.state is JobState.FINISHED:
            return
        try:
            path = self._path(effect.job_uid)
            told = control.ask_to_stop(path, effect.cause, effect.grace_seconds)
        except OSError as error:
            _log.warning("stop.failed uid=%s error=%s", effect.job_uid, error)
            told = False
        if not told:
            self._loop.call_later(_TELL_AGAIN_SECONDS, self._signal_stop, effect)

    def _take_notices(self, notices: socket.socket) -> None:
        for _ in range(64):
            try:
                kind, _, uid = notices.recv(256).decode("ascii", "replace").partition(" ")
            except BlockingIOError:
                break
            if kind == "cleaning":
                self._perform(self._journal.supervisor_cleaning(uid))
            elif self._manager is not None:
                self._manager.outbox.touch(uid)
        self._plan_turn()


def _try_prepare(effect: StartPreparing, host: process.Host) -> str:
    """Prepare, and return why it failed; empty when it has not."""
    try:
        process.prepare(effect.job, effect.digest, host)
    except process.PrepareError as error:
        return str(error)
    return ""


def _clear(job_uid: str) -> list[int]:
    left = processes.kill_tagged(
        job_uid, signal.SIGKILL, patience_seconds=_LEFTOVERS_PATIENCE_SECONDS
    )
    limits.discard(job_uid)
    return left


def _bind(name: str, kind: socket.SocketKind) -> socket.socket:
    """Make a socket in the current directory in place of one that a crash left there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    made = socket.socket(socket.AF_UNIX, kind)
    made.setblocking(False)
    # Made with the umask, so never open to others, not even for a moment.
    before = os.umask(0o177)
    try:
        made.bind(name)
    finally:
        os.umask(before)
    return made


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

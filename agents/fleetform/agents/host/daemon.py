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
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from fleetform.agents.host import layout, memory, orphan, supervisor_messages
from fleetform.agents.host.connection import Connection
from fleetform.agents.host.contact import Contact, boot_ms
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
from fleetform.agents.host.exec_channel import Commands
from fleetform.agents.host.forward_channel import Forwards
from fleetform.agents.host.jobs import Jobs, now_ms
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.outbox import Outbox
from fleetform.agents.host.rank_calls import CAPABILITY, RankCalls
from fleetform.agents.host.requests import Requests
from fleetform.agents.host.runtimes.means import make_means
from fleetform.agents.host.runtimes.routing import RoutedRuntime
from fleetform.agents.host.spot_notice import (
    LAST_SECONDS,
    LOOK_SECONDS,
    SpotNotice,
    is_spot_host,
    note_spot_host,
)
from fleetform.agents.host.storage import FileStore
from fleetform.agents.protocol.channels import (
    ChannelData,
    ChannelEnded,
    CloseChannel,
    Credit,
    OpenChannel,
)
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import OWN_CHANNEL_FIRST
from fleetform.agents.protocol.messages import (
    Acknowledge,
    Event,
    FollowLog,
    Forget,
    Heartbeat,
    Hello,
    JobRecord,
    LogData,
    Prepare,
    Probe,
    Rejected,
    Reply,
    Shutdown,
    Start,
    Stop,
    Unknown,
)
from fleetform.agents.protocol.states import JobState

_log = logging.getLogger("fleetform.agent")

_HOUSEKEEPING_SECONDS = 3600.0

_CHANNEL_MESSAGES = (OpenChannel, ChannelData, CloseChannel, Credit)
"""What a connection that only looks may send after its hello."""


@dataclass(frozen=True)
class Settings:
    """`root` is absolute; `idle_exit_seconds` is None for an agent that stays for good."""

    root: str
    idle_exit_seconds: float | None
    spawner_pid: int
    mounts_obstacle: str
    limits: tuple[str, ...]


class Daemon:
    """Carries out what the journal wants, and tells it what has happened."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        store: FileStore,
        channel: socket.socket,
        contact: Contact,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._journal = journal
        self._store = store
        self._contact = contact
        means = make_means(
            settings.root,
            channel,
            spawner_pid=settings.spawner_pid,
            mounts_obstacle=settings.mounts_obstacle,
            memory_limit=settings.limits[0],
        )
        runtime = RoutedRuntime(means, journal.runtime_of)
        self._runtime = runtime
        self._jobs = Jobs(journal, runtime, self)
        self._commands = Commands(journal.find, runtime)
        self._forwards = Forwards(journal.find)
        self._ranks = RankCalls(settings.root)
        self._spot_notice = SpotNotice()
        self._requests = Requests(settings.root, settings.limits)
        self._connections: list[Connection] = []
        self._manager: Connection | None = None
        self._turn_waits = False
        self._idle_since = self._loop.time()
        self._ended = asyncio.Event()
        self._shutting_down = False
        # asyncio itself holds tasks by weak references only.
        self._tasks: list[asyncio.Task[None]] = []

    # -- life -------------------------------------------------------------------------------

    async def run(self, recovered: Iterable[Effect], listening: Callable[[], None]) -> None:
        """Serve until a request to end, or idle for long enough; calls `listening` once reachable."""
        listener = _bind(layout.NOTICE_SOCKET, socket.SOCK_DGRAM)
        self._loop.add_reader(listener, self._take_notices, listener)
        self.perform(recovered)
        self.settle()
        for entry in self._journal.entries():
            if entry.record.state is JobState.RUNNING:
                self._ranks.listen(entry.record.job_uid, entry.record.key)
        door = _bind(layout.AGENT_SOCKET, socket.SOCK_STREAM)
        jobs = f"{self._settings.root}/{layout.JOBS}"
        server = await self._loop.create_unix_server(
            lambda: Connection(
                self,
                jobs,
                self._requests.blobs,
                commands=self._commands,
                forwards=self._forwards,
            ),
            sock=door,
            backlog=64,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.end)
        self._watch_idleness()
        self._keep_house()
        if orphan.is_watched():
            self._note_needed()
        self._watch_spot()
        listening()
        _log.info("agent.listening pid=%d", os.getpid())
        await self._ended.wait()
        server.close()
        self._close(listener)
        # One more round, so that what was said last leaves.
        await asyncio.sleep(0)
        _log.info("agent.ended pid=%d", os.getpid())

    def _close(self, listener: socket.socket) -> None:
        self._commands.close()
        self._forwards.close()
        self._ranks.close()
        self.settle()
        for connection in list(self._connections):
            connection.close()
        self._loop.remove_reader(listener)
        listener.close()
        self._runtime.close()
        for name in (layout.AGENT_SOCKET, layout.NOTICE_SOCKET, layout.AGENT_PID):
            with contextlib.suppress(OSError):
                os.unlink(name)

    def _watch_idleness(self) -> None:
        idle_seconds = self._settings.idle_exit_seconds
        if idle_seconds is None:
            return
        now = self._loop.time()
        if self._connections or self._journal.has_live_jobs():
            self._idle_since = now
        elif now - self._idle_since >= idle_seconds:
            _log.info("agent.idle seconds=%d", idle_seconds)
            self.end()
            return
        self._loop.call_later(min(max(idle_seconds / 4, 0.05), 15), self._watch_idleness)

    def _note_needed(self) -> None:
        at_ms = boot_ms() if self._journal.has_live_jobs() else self._contact.at_ms
        orphan.note_needed(at_ms)
        self._loop.call_later(orphan.NOTE_SECONDS, self._note_needed)

    def _watch_spot(self) -> None:
        """Look for the notice that this host is taken away, while it is a spot instance with jobs."""
        if self._journal.has_live_jobs() and is_spot_host():
            self.begin(self._end_with_spot())
        self._loop.call_later(LOOK_SECONDS, self._watch_spot)

    async def _end_with_spot(self) -> None:
        ends_at = await self._loop.run_in_executor(None, self._spot_notice.ends_at)
        if ends_at is None:
            return
        is_last = ends_at - now_ms() / 1000 <= LAST_SECONDS
        _log.warning("spot-notice.given ends_at=%d", ends_at)
        self.perform(self._journal.interrupt(now_ms(), grace_seconds=0 if is_last else None))

    def _keep_house(self) -> None:
        self.perform(self._journal.expire(now_ms()))
        self._requests.blobs.expire(now_ms() / 1000)
        self._requests.blobs.evict(now_ms() / 1000)
        self.settle()
        if self._store.long:
            self._store.rewrite(memory.snapshot(self._journal.memory))
        self._loop.call_later(_HOUSEKEEPING_SECONDS, self._keep_house)

    def end(self) -> None:
        """End after this turn; jobs go on."""
        self._ended.set()

    # -- turns --------------------------------------------------------------------------------

    def _plan_turn(self) -> None:
        """Have what was decided written and said, once for all that comes in meanwhile."""
        if not self._turn_waits:
            self._turn_waits = True
            self._loop.call_soon(self.settle)

    def settle(self) -> None:
        """End a turn: write what was decided in it, then let out what rests on that."""
        self._turn_waits = False
        more = self._manager is not None and self._manager.outbox.pump()
        try:
            self._store.commit()
        except OSError as error:
            # A full disk. What is in force is in memory, and each job's directory says most of
            # it again; the entries are tried again with the next turn.
            _log.error("journal.unwritten error=%s", error)
        self._runtime.flush()
        for connection in self._connections:
            connection.outbox.flush()
        self._end_shutdown()
        if more:
            self._plan_turn()

    def perform(self, effects: Iterable[Effect], connection: Connection | None = None) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self._store.append(effect.entry, sync=effect.sync)
            elif isinstance(effect, Send):
                assert connection is not None
                connection.outbox.say(effect.reply)
            elif isinstance(effect, Announce):
                self._announce(effect.event)
            elif isinstance(effect, StartPreparing):
                if effect.job.is_spot:
                    note_spot_host()
                self._jobs.prepare(effect)
            elif isinstance(effect, StartSupervisor):
                self._runtime.start(effect.job_uid)
            elif isinstance(effect, WatchSupervisor):
                self._jobs.watch(effect.job_uid)
            elif isinstance(effect, SignalStop):
                self._jobs.signal_stop(effect)
            elif isinstance(effect, KillLeftovers):
                self.begin(self._jobs.kill_leftovers(effect.job_uid))
            else:
                assert isinstance(effect, RemoveJobDirectory), effect
                self._runtime.remove(effect.job_uid)
        self._plan_turn()

    def _announce(self, event: Event) -> None:
        if event.record.state is not JobState.RUNNING:
            self._end_commands(event.record)
        else:
            self._ranks.listen(event.record.job_uid, event.record.key)
        if self._manager is None:
            return
        self._manager.outbox.say(event)
        if event.record.state is JobState.FINISHED:
            self._manager.outbox.end(event.record.job_uid, event.record.log_bytes)

    def _end_commands(self, record: JobRecord) -> None:
        """End what runs in a job that is over, also what has left the session of its command."""
        self._commands.end(record.job_uid)
        self._forwards.end(record.job_uid)
        self._ranks.forget(record.job_uid)
        if record.state is JobState.FINISHED and self._commands.has_entered(record.job_uid):
            tag = self._journal.tag_of(record.job_uid)
            self._loop.run_in_executor(None, self._runtime.end_leftovers, record.job_uid, tag, None)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    @property
    def outbox(self) -> Outbox | None:
        return None if self._manager is None else self._manager.outbox

    # -- connections ----------------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        self._connections.append(connection)

    def writable(self, connection: Connection) -> None:
        self._plan_turn()

    def disconnected(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
        self._idle_since = self._loop.time()
        connection.outbox.close()
        if connection is self._manager:
            self._manager = None
            self._ranks.detach()
            self._end_shutdown()

    def received(self, connection: Connection, message: Message | Unknown) -> None:
        if isinstance(message, Unknown):
            self._refuse_unknown(connection, message)
        elif isinstance(message, Hello):
            self._greet(connection, message)
        elif isinstance(message, Probe):
            self.begin(self._answer(connection, message))
        elif isinstance(message, Heartbeat):
            if connection is self._manager:
                self._contact.answered(message.at_ms, boot_ms())
        elif connection is not self._manager and not (
            connection.is_looking and isinstance(message, _CHANNEL_MESSAGES)
        ):
            connection.outbox.say(Rejected("protocol", "say hello first"))
            connection.close()
        elif isinstance(message, (Prepare, Start, Stop, Forget, Acknowledge)):
            self._obey(connection, message)
        elif isinstance(message, FollowLog):
            self._follow(connection, message)
        elif isinstance(message, Shutdown):
            self._shut_down(connection, message)
        elif isinstance(message, OpenChannel):
            connection.channels.open(message, is_looking=connection.is_looking)
        elif isinstance(message, (Reply, ChannelEnded)) or (
            isinstance(message, (ChannelData, Credit)) and message.channel >= OWN_CHANNEL_FIRST
        ):
            self._ranks.take(message)
        elif isinstance(message, ChannelData):
            connection.channels.take(message)
        elif isinstance(message, CloseChannel):
            self.begin(self._close_channel(connection, connection.channels.close(message)))
        elif isinstance(message, Credit):
            connection.outbox.credit(message)
            connection.channels.credit(message)
        elif self._requests.knows(message):
            self.begin(self._answer(connection, message))
        else:
            _log.warning("connection.garbled type=%s", type(message).__name__)
            connection.close()
        self._plan_turn()

    def _refuse_unknown(self, connection: Connection, message: Unknown) -> None:
        _log.warning("message.unknown %s", message.problem)
        if message.id is not None:
            problem = f"the agent does not support this request: {message.problem}"
            connection.outbox.say(Reply(message.id, False, "unsupported", problem))

    def _greet(self, connection: Connection, hello: Hello) -> None:
        answer, effects = self._journal.hello(hello, now_ms())
        self.perform(effects)
        connection.outbox.say(answer)
        if isinstance(answer, Rejected):
            _log.warning("hello.rejected code=%s", answer.code)
            connection.close()
            return
        connection.speak(answer.protocol)
        connection.is_looking = hello.look
        if hello.look:
            return
        for event in self._journal.news_for(hello):
            connection.outbox.say(event)
        former, self._manager = self._manager, connection
        self._ranks.detach()
        if CAPABILITY in hello.capabilities:
            self._ranks.attach(connection.say)
        if former is not None and former is not connection:
            self._dismiss(former, hello)

    def _dismiss(self, former: Connection, hello: Hello) -> None:
        """One speaks at a time: the newest of those with the highest fence."""
        message = "another controller manages this host now"
        former.outbox.say(
            Rejected("old_fence", message, self._journal.owner, hello.ledger_id, hello.epoch)
        )
        former.close()
        former.outbox.close()

    def _obey(
        self, connection: Connection, command: Prepare | Start | Stop | Forget | Acknowledge
    ) -> None:
        if self._shutting_down and isinstance(command, (Prepare, Start)):
            reply = Reply(command.id, False, "busy", "the agent is shutting down")
            connection.outbox.say(reply)
            return
        self.perform(self._journal.handle(command, now_ms()), connection)

    def _follow(self, connection: Connection, command: FollowLog) -> None:
        record = self._journal.find(command.job_uid)
        if record is None:
            # Forgotten, so all of it has been taken in before.
            connection.outbox.say(LogData(command.job_uid, command.offset, "", complete=True))
            return
        connection.outbox.follow(command.job_uid, command.offset)
        if record.state is JobState.FINISHED:
            connection.outbox.end(command.job_uid, record.log_bytes)

    def _shut_down(self, connection: Connection, command: Shutdown) -> None:
        live = self._journal.has_live_jobs()
        if live and not command.force:
            message = "jobs are running on this host: stop them first, or use force"
            connection.outbox.say(Reply(command.id, False, "busy", message))
            return
        connection.outbox.say(Reply(command.id, True))
        self._shutting_down = True
        self.perform(self._journal.stop_all(now_ms()))

    def _end_shutdown(self) -> None:
        """End once all jobs have ended and the controller has their output."""
        if not self._shutting_down or self._journal.has_live_jobs():
            return
        if self._manager is None or not self._manager.outbox.owes_output:
            self.end()

    async def _answer(self, connection: Connection, message: Message) -> None:
        connection.outbox.say(
            await self._requests.answer(
                message, self._journal.owner or "", self._journal.owner_name
            )
        )
        self._plan_turn()

    async def _close_channel(self, connection: Connection, work: Callable[[], Reply]) -> None:
        # The whole of a large content is hashed now.
        connection.outbox.say(await self._loop.run_in_executor(None, work))
        self._plan_turn()

    def _take_notices(self, listener: socket.socket) -> None:
        # A share of them; what is left calls again.
        for _ in range(64):
            notice = supervisor_messages.receive(listener)
            if notice is None:
                break
            self._jobs.notice(*notice)
        self._plan_turn()


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

"""
An open session with an agent, in the words of the contract.

Whatever carried the bytes, what a session raises becomes an error that says what to do next.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from fleetform.agents.client.channel import PIECE_BYTES, Channel
from fleetform.agents.client.errors import (
    ConnectionLost,
    ContentChanged,
    HelloRejected,
    RequestRefused,
    SessionError,
)
from fleetform.agents.client.session import Session
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.channels import OpenChannel
from fleetform.agents.protocol.frames import FrameError
from fleetform.agents.protocol.host_report import GpuProcess
from fleetform.agents.protocol.messages import (
    Cursor,
    Event,
    Hello,
    JobKey,
    LogData,
    Reply,
    StartJob,
)
from fleetform.agents.protocol.states import Cause
from fleetform.providers.capacity import instance_report
from fleetform.providers.contract.errors import (
    OwnedElsewhere,
    PermanentError,
    ProviderError,
    RefusedForNow,
    TemporaryError,
)
from fleetform.providers.contract.hosts import Identity, InstanceRequest
from fleetform.providers.contract.job_streams import (
    ExecEnd,
    ExecRequest,
    ExecSession,
    ForwardSession,
    JobAddress,
    RankCall,
    RankStreams,
)
from fleetform.providers.contract.observed import HostSeen

_RELEASE_SECONDS = 120.0
"""Jobs get their grace before the agent ends; theirs is 10 s unless declared longer."""

_ABLE = {
    "channel.exec": "run commands in jobs",
    "channel.forward": "forward ports of jobs",
    "exec.sftp": "copy files by SFTP",
}
"""What an agent cannot do that lacks a capability."""

# A release must be obeyed by the agent of the instance: no fence of a manager is higher.
_LAST_FENCE = (1 << 63) - 1

Opening = Callable[[Hello], Awaitable[Session]]
"""Opens a session with one instance's agent; raises errors of the contract."""


class SessionHost:
    """Fills `contract.hosts.Host` with a session; every error of it is translated."""

    def __init__(
        self,
        name: str,
        session: Session,
        seen: HostSeen,
        volumes: str,
        note_commits: Callable[[int], None] = lambda _commits: None,
    ) -> None:
        """
        Args:
            name: Of the instance, for messages.
            session: Open.
            seen: What its agent answered.
            volumes: Absolute path, on the host, of the folder of this environment's volumes.
            note_commits: Keeps where the inventory finds it how far the ledger has come.
        """
        self.seen = seen
        self.ranks: RankStreams = _RankStreams(name, session)
        self._volumes = volumes
        self._name = name
        self._session = session
        self._note_commits = note_commits

    @property
    def silent_seconds(self) -> float:
        return self._session.silent_seconds

    @property
    def is_overdue(self) -> bool:
        return self._session.is_overdue

    def volume_path(self, path: str) -> str:
        return volume_path(self._volumes, path)

    async def look_again(self) -> HostSeen:
        with translated(self._name):
            report = await self._session.probe()
        return dataclasses.replace(self.seen, records=None, report=report)

    async def prepare(self, job: StartJob) -> Reply:
        with translated(self._name):
            return await self._session.prepare(job)

    async def start(self, key: JobKey, gen: int, boot_id: str) -> Reply:
        with translated(self._name):
            return await self._session.start(key, gen, boot_id)

    async def stop(
        self, key: JobKey, job_uid: str, gen: int, *, cause: Cause, grace_seconds: int | None
    ) -> Reply:
        with translated(self._name):
            return await self._session.stop(
                key, job_uid, gen, cause=cause, grace_seconds=grace_seconds
            )

    async def forget(self, keys: Sequence[JobKey]) -> Reply:
        with translated(self._name):
            return await self._session.forget(keys)

    async def acknowledge(self, cursor: Cursor, commits: int = 0) -> None:
        if commits:
            self._note_commits(commits)
        with translated(self._name):
            await self._session.acknowledge(cursor)

    async def missing_blobs(self, digests: Sequence[str]) -> Sequence[str]:
        with translated(self._name):
            return await self._session.missing_blobs(digests)

    async def put_blob(self, sha256: str, path: str) -> None:
        with translated(self._name):
            await self._session.put_blob(sha256, path)

    async def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, *, take: str = "any"
    ) -> Reply:
        with translated(self._name):
            return await self._session.make_volume(operation_uid, volume_uid, name, path, take=take)

    async def remove_volume(
        self, operation_uid: str, volume_uid: str, path: str, *, delete_data: bool
    ) -> Reply:
        with translated(self._name):
            return await self._session.remove_volume(
                operation_uid, volume_uid, path, delete_data=delete_data
            )

    async def mount_disk(
        self, volume_uid: str, name: str, disk: str, path: str, snapshot: str = ""
    ) -> Reply:
        with translated(self._name):
            return await self._session.mount_disk(volume_uid, name, disk, path, snapshot)

    async def mount_file_system(self, kind: str, source: str, path: str) -> Reply:
        with translated(self._name):
            return await self._session.mount_file_system(kind, source, path)

    async def unmount_disk(self, path: str) -> Reply:
        with translated(self._name):
            return await self._session.unmount_disk(path)

    async def snapshot_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, into: str
    ) -> Reply:
        with translated(self._name):
            return await self._session.snapshot_volume(operation_uid, volume_uid, name, path, into)

    def answer_heartbeats(self, may: Callable[[], bool]) -> None:
        self._session.answer_heartbeats(may)

    async def follow_log(self, job_uid: str, offset: int) -> None:
        with translated(self._name):
            await self._session.follow_log(job_uid, offset)

    async def shutdown(self, *, force: bool) -> Reply:
        with translated(self._name):
            return await self._session.shutdown(force=force)

    async def gpu_processes(self) -> Mapping[str, GpuProcess | None]:
        with translated(self._name):
            report = await self._session.probe()
        return {gpu.uuid: gpu.used_by for gpu in report.gpus}

    def news(self) -> AsyncIterator[Sequence[Event | LogData]]:
        return self._session.news()

    async def close(self) -> None:
        await self._session.close()


class _RankStreams:
    """Fills `contract.job_streams.RankStreams`."""

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._session = session

    async def open_exec(self, command: ExecRequest) -> ExecSession:
        return await _open_command(self._name, self._session, command)

    async def calls(self) -> AsyncIterator[RankCall]:
        async for call, channel in self._session.calls():
            try:
                yield _RankCall(self._name, self._session, call, channel)
            except (KeyError, TypeError, ValueError) as error:
                self._session.answer_call(call, f"the parameters of `rank` are not valid: {error}")


def volume_path(volumes: str, path: str) -> str:
    """Return where a volume's declared path lies; a relative one, in the folder `volumes`."""
    if path.startswith("/"):
        return path
    # Absolute first: no path leaves the environment's own folder with `..`.
    return volumes + posixpath.normpath("/" + path)


def hello_of(identity: Identity, cursor: Cursor | None) -> Hello:
    """Return the hello of a controller that manages the host."""
    return Hello(
        identity.environment_uid,
        identity.ledger_id,
        identity.epoch,
        identity.fence,
        cursor,
        environment_name=identity.environment_name,
    )


def host_seen(request: InstanceRequest, session: Session, cursor: Cursor | None) -> HostSeen:
    """Return what an agent answered to a hello with this cursor."""
    welcome = session.welcome
    # With a snapshot all up to now is told; without one, what follows our cursor comes next.
    told = cursor if welcome.records is None else None
    return HostSeen(
        instance_uid=request.uid,
        install_id=welcome.install_id,
        boot_id=welcome.boot_id,
        machine_id=welcome.machine_id,
        ledger_id=welcome.ledger_id,
        epoch=welcome.epoch,
        cursor=told or Cursor(welcome.log_id, welcome.newest),
        records=welcome.records,
        report=instance_report(session.report, share=request.share, declared=request.declared),
        oldest=welcome.oldest,
        capabilities=welcome.capabilities,
    )


class SessionStreams:
    """Fills `contract.job_streams.JobStreams` with a session that is used for nothing else."""

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._session = session

    async def open_exec(self, command: ExecRequest) -> ExecSession:
        return await _open_command(self._name, self._session, command)

    async def open_forward(self, job: JobAddress, port: int) -> ForwardSession:
        parameters = {"key": str(job.key), "job_uid": job.job_uid, "port": port}
        channel = await _open_channel(self._name, self._session, "forward", parameters)
        return _Forward(self._name, channel, lambda: _close_stream(self._session, channel))

    async def ping(self) -> None:
        with translated(self._name):
            await self._session.ping()

    async def lost(self) -> None:
        async for _ in self._session.news():
            pass

    async def close(self) -> None:
        await self._session.close()


async def _close_stream(session: Session, channel: Channel) -> None:
    # A connection that is lost has ended its channels.
    with contextlib.suppress(SessionError):
        await session.close_stream(channel)


async def _open_command(name: str, session: Session, command: ExecRequest) -> ExecSession:
    """Start a command over a session that carries others too, and goes on after it."""
    channel = await _open_exec(name, session, command)
    return _Exec(name, channel, lambda: _close_stream(session, channel))


async def _open_exec(name: str, session: Session, command: ExecRequest) -> Channel:
    parameters: dict[str, Any] = {
        "key": str(command.key),
        "job_uid": command.job_uid,
        "argv": list(command.argv),
    }
    if command.subsystem:
        _require(name, session, f"exec.{command.subsystem}")
        parameters["subsystem"] = command.subsystem
    if command.size is not None:
        rows, columns = command.size
        parameters |= {"rows": rows, "columns": columns, "term": command.term}
    return await _open_channel(name, session, "exec", parameters)


async def _open_channel(
    name: str, session: Session, kind: str, parameters: dict[str, Any]
) -> Channel:
    _require(name, session, f"channel.{kind}")
    with translated(name):
        return await session.open_channel(kind, parameters)


def _require(name: str, session: Session, capability: str) -> None:
    if capability not in session.welcome.capabilities:
        raise PermanentError(
            f"instance {name}: its agent is of fleetform {session.welcome.version} and cannot"
            f" {_ABLE[capability]}",
            advice="end the agent, whose pid is in `agent.pid` in its folder: its jobs continue, and"
            " the next apply starts an agent of this release",
        )


async def _write(name: str, channel: Channel, kind: int, data: bytes) -> None:
    """Send data in pieces of one kind; waits while the other side takes none."""
    with translated(name):
        for begin in range(0, len(data), PIECE_BYTES):
            await channel.write(bytes([kind]) + data[begin : begin + PIECE_BYTES])


class _Exec:
    """Fills `contract.job_streams.ExecSession`."""

    def __init__(self, name: str, channel: Channel, close: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._channel = channel
        self._close = close

    async def output(self) -> AsyncIterator[tuple[bytes, bool]]:
        with translated(self._name):
            while (piece := await self._channel.read()) is not None:
                yield piece[1:], piece[:1] == bytes([exec_pieces.ERRORS])

    async def write(self, data: bytes) -> None:
        await _write(self._name, self._channel, exec_pieces.DATA, data)

    def end_input(self) -> None:
        self._send(bytes([exec_pieces.END_OF_INPUT]))

    def resize(self, size: exec_pieces.Size) -> None:
        self._send(exec_pieces.resize(size))

    def signal(self, name: str) -> None:
        self._send(exec_pieces.signal_piece(name))

    def _send(self, piece: bytes) -> None:
        with translated(self._name):
            self._channel.write_now(piece)

    def end(self) -> ExecEnd:
        ended = self._channel.ended
        assert ended is not None, "the command has not ended"
        if ended.code:
            raise PermanentError(f"instance {self._name}: {ended.message}")
        code, number = ended.body.get("exit_code"), ended.body.get("signal")
        return ExecEnd(
            exit_code=code if isinstance(code, int) else None,
            signal=number if isinstance(number, int) else None,
            job_ended=ended.body.get("job_ended") is True,
        )

    async def close(self) -> None:
        await self._close()


class _Forward:
    """Fills `contract.job_streams.ForwardSession`."""

    def __init__(self, name: str, channel: Channel, close: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._channel = channel
        self._close = close

    async def read(self) -> bytes:
        with translated(self._name):
            while (piece := await self._channel.read()) is not None:
                if piece[:1] == bytes([exec_pieces.END_OF_INPUT]):
                    return b""
                if len(piece) > 1:
                    return piece[1:]
        ended = self._channel.ended
        if ended is not None and ended.code:
            raise PermanentError(f"instance {self._name}: the connection was cut: {ended.message}")
        return b""

    async def write(self, data: bytes) -> None:
        await _write(self._name, self._channel, exec_pieces.DATA, data)

    def end_input(self) -> None:
        with translated(self._name):
            self._channel.write_now(bytes([exec_pieces.END_OF_INPUT]))

    async def close(self) -> None:
        await self._close()


class _RankCall:
    """Fills `contract.job_streams.RankCall`."""

    def __init__(self, name: str, session: Session, call: OpenChannel, channel: Channel) -> None:
        """Raises KeyError, TypeError or ValueError where the parameters are not valid."""
        asked = call.parameters
        self.caller = JobAddress(JobKey.parse(str(asked["key"])), str(asked["job_uid"]))
        self.rank = int(asked["rank"])
        self.argv = tuple(str(word) for word in asked["argv"])
        self._name = name
        self._session = session
        self._call = call
        self._channel = channel

    def accept(self) -> None:
        with translated(self._name):
            self._session.answer_call(self._call)

    def refuse(self, problem: str) -> None:
        with translated(self._name):
            self._session.answer_call(self._call, problem)

    async def input(self) -> AsyncIterator[tuple[int, bytes]]:
        with translated(self._name):
            while (piece := await self._channel.read()) is not None:
                if piece:
                    yield piece[0], piece[1:]

    async def write(self, data: bytes, *, is_error: bool) -> None:
        kind = exec_pieces.ERRORS if is_error else exec_pieces.DATA
        await _write(self._name, self._channel, kind, data)

    def end(self, end: ExecEnd) -> None:
        body = {"exit_code": end.exit_code} if end.signal is None else {"signal": end.signal}
        with translated(self._name):
            self._session.end_call(self._call, "", body)

    def fail(self, problem: str) -> None:
        with translated(self._name):
            self._session.end_call(self._call, problem, {})


async def end_jobs(
    name: str, opening: Opening, environment_uid: str, *, ledger_id: str = "", epoch: int = 0
) -> None:
    """
    End an agent and what it runs, and return when it has ended.

    `ledger_id` and `epoch` are those that the agent obeys, as far as they are known.
    """
    session = await _command(opening, Hello(environment_uid, ledger_id, epoch, _LAST_FENCE))
    try:
        with translated(name):
            reply = await session.shutdown(force=True)
        if not reply.ok:
            raise TemporaryError(f"the agent of instance {name} does not end: {reply.message}")
        await _silence(name, session)
    finally:
        await session.close()


async def _command(opening: Opening, hello: Hello) -> Session:
    """Open a session that has the last word, whichever ledger the agent obeys."""
    try:
        return await opening(hello)
    except OwnedElsewhere as refusal:
        if refusal.owner != hello.environment_uid:
            raise
        # Our note is older than what the agent knows: we died between the two.
        return await opening(
            dataclasses.replace(hello, ledger_id=refusal.ledger_id, epoch=refusal.epoch)
        )


async def _silence(name: str, session: Session) -> None:
    """Wait until the agent has said how its jobs ended, and then nothing more."""
    try:
        async with asyncio.timeout(_RELEASE_SECONDS):
            async for _ in session.news():
                pass
    except TimeoutError:
        raise TemporaryError(
            f"instance {name}: its jobs have not ended within {_RELEASE_SECONDS:.0f} s",
            delay_seconds=10.0,
        ) from None


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Raise what a session raises as an error of the contract that names the instance."""
    try:
        yield
    except (SessionError, FrameError) as error:
        raise _TABLE[type(error)](f"instance {name}: {error}", error) from error


def _rejected(message: str, error: HelloRejected) -> ProviderError:
    answer = error.answer
    if answer.code in {"foreign_owner", "foreign_ledger", "old_epoch"}:
        return OwnedElsewhere(
            message, owner=answer.owner or "", ledger_id=answer.ledger_id, epoch=answer.epoch
        )
    if answer.code == "old_fence":
        return PermanentError(message, advice="another process has taken over this environment")
    return PermanentError(message, advice="use the release of fleetform that created the instance")


def _refused(message: str, error: RequestRefused) -> ProviderError:
    # A disk may be given space again, and an I/O error may have been the last.
    if error.reply.code in {"no_space", "io", "busy"}:
        return RefusedForNow(message, delay_seconds=10.0)
    return PermanentError(message)


_TABLE: dict[type[Exception], Callable[..., ProviderError]] = {
    ConnectionLost: lambda message, _: TemporaryError(message),
    HelloRejected: _rejected,
    RequestRefused: _refused,
    ContentChanged: lambda message, _: PermanentError(
        message, advice="apply again: the plan then contains the new content of the file"
    ),
    # Of our own making: a message too long for a frame.
    FrameError: lambda message, _: PermanentError(message, advice="make the document smaller"),
}

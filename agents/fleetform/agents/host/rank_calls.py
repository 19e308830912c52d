"""
Commands that jobs start in other ranks of their runs, carried to the controller.

Each job on several nodes has a socket in its directory, which its own account alone may open. A program
of the job asks there for a command in another rank (`rank_launcher`); the agent asks the controller that
manages it, over a channel of the kind `rank`, and the controller opens the command on the other host.
Which job asks is known by the socket, and a job can name nothing but a rank of its own attempt. Without a
controller a call waits, and its program gets a notice.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import collections
import contextlib
import json
import logging
import os
import socket
import stat
import struct
import time
from collections.abc import Callable
from typing import Any

from fleetform.agents.host import layout, rank_launcher
from fleetform.agents.host.rank_launcher import HEAD
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, Credit, OpenChannel
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import OWN_CHANNEL_FIRST, Window
from fleetform.agents.protocol.messages import JobKey, Reply

CAPABILITY = "channel.rank"

CALLS_MAX = 256
"""Of all jobs of a host at a time: `mpirun` makes one for each other node."""

_READ_BYTES = 32 << 10
_HEADER_BYTES_MAX = 1 << 20
"""A command line with all that `mpirun` puts into it; the kernel takes no more of one argument."""

_log = logging.getLogger("fleetform.agent")

_KINDS_IN = {
    rank_launcher.DATA: exec_pieces.DATA,
    rank_launcher.END_OF_INPUT: exec_pieces.END_OF_INPUT,
    rank_launcher.SIGNAL: exec_pieces.SIGNAL,
}
_KINDS_OUT = {exec_pieces.DATA: rank_launcher.DATA, exec_pieces.ERRORS: rank_launcher.ERRORS}


class RankCalls:
    """
    Those of all jobs of this host. Paths are relative: the agent's root is the current directory.

    `root` is its path, by which the working directories of other accounts' jobs are named.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._listening: set[str] = set()
        self._servers: dict[str, asyncio.AbstractServer] = {}
        self._opening: list[asyncio.Task[None]] = []
        self._calls: dict[int, _Call] = {}
        self._waiting = 0
        self._last_channel = OWN_CHANNEL_FIRST - 1
        self._say: Callable[[Message], None] | None = None
        self._has_manager = asyncio.Event()

    # -- jobs -----------------------------------------------------------------------------------------

    def listen(self, job_uid: str, key: JobKey) -> None:
        """Open the socket of a job that runs; nothing where it is on one node."""
        folder = self._folder(job_uid)
        if job_uid in self._listening or not os.path.exists(f"{folder}/{layout.HOSTFILE}"):
            return
        try:
            owner = os.stat(f"{folder}/{layout.WORK}")
            # A socket's address holds 107 bytes, and the path of the folder may be longer.
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                listener = _bound(f"/proc/self/fd/{opened}/{rank_launcher.SOCKET}", owner)
            finally:
                os.close(opened)
        except OSError as error:
            _log.warning("ranks.unreachable job=%s error=%s", job_uid, error)
            return
        self._listening.add(job_uid)
        task = asyncio.get_running_loop().create_task(
            self._open(job_uid, key, listener, {0, os.geteuid(), owner.st_uid})
        )
        self._opening.append(task)
        task.add_done_callback(self._opening.remove)

    def _folder(self, job_uid: str) -> str:
        """Return where the job finds its own files: below the root, or where its account can enter."""
        shared = f"{layout.accounts_folder(self._root)}/{job_uid}"
        return shared if os.path.isdir(shared) else f"{layout.JOBS}/{job_uid}"

    async def _open(
        self, job_uid: str, key: JobKey, listener: socket.socket, users: set[int]
    ) -> None:
        server = await asyncio.start_unix_server(
            lambda reader, writer: self._serve(reader, writer, job_uid, key, users),
            sock=listener,
            limit=_HEADER_BYTES_MAX,
        )
        if job_uid in self._listening:
            self._servers[job_uid] = server
        else:
            server.close()  # The job was over at once.

    def forget(self, job_uid: str) -> None:
        """The job is over: its calls end."""
        if job_uid not in self._listening:
            return
        self._listening.remove(job_uid)
        server = self._servers.pop(job_uid, None)
        if server is not None:
            server.close()
        with contextlib.suppress(OSError):
            os.unlink(f"{self._folder(job_uid)}/{rank_launcher.SOCKET}")
        for call in list(self._calls.values()):
            if call.job_uid == job_uid:
                call.fail("the job has ended")

    def close(self) -> None:
        """The agent ends; the next one opens the sockets again."""
        for server in self._servers.values():
            server.close()

    # -- the controller -------------------------------------------------------------------------------

    def attach(self, say: Callable[[Message], None]) -> None:
        """A controller manages this host now that carries such calls; `say` sends to it."""
        self._lose()
        self._say = say
        self._has_manager.set()

    def detach(self) -> None:
        """Its connection has ended."""
        self._say = None
        self._has_manager.clear()
        self._lose()

    def _lose(self) -> None:
        for call in list(self._calls.values()):
            call.lose()

    def take(self, message: ChannelData | Credit | ChannelEnded | Reply) -> None:
        """Read what the controller says of a call; a message of no call was under way at its end."""
        number = message.id if isinstance(message, Reply) else message.channel
        call = self._calls.get(number)
        if call is not None:
            call.take(message)

    # -- one call -------------------------------------------------------------------------------------

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        job_uid: str,
        key: JobKey,
        users: set[int],
    ) -> None:
        client = _Client(reader, writer)
        try:
            if _user_of(writer) not in users:
                _log.warning("ranks.refused job=%s reason=uid", job_uid)
                return
            if len(self._calls) + self._waiting >= CALLS_MAX:
                await client.end({"error": f"{CALLS_MAX} commands in other ranks run already"})
                return
            rank, argv = await client.header()
            parameters = {"key": str(key), "job_uid": job_uid, "rank": rank, "argv": argv}
            await client.end(await self._call(client, job_uid, parameters))
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # The program has ended, or it is not the launcher.
        finally:
            writer.close()

    async def _call(
        self, client: _Client, job_uid: str, parameters: dict[str, Any]
    ) -> dict[str, Any]:
        """Carry a call out; returns how it ended."""
        has_waited = False
        while True:
            if self._say is None:
                if not has_waited:
                    await client.notice("no controller is connected to this host; waiting for one")
                has_waited = True
                self._waiting += 1
                try:
                    await client.unless_gone(self._has_manager.wait())
                finally:
                    self._waiting -= 1
                continue
            self._last_channel += 1
            call = _Call(self._last_channel, job_uid, client, self._say)
            self._calls[call.number] = call
            try:
                ended = await call.run(parameters)
            finally:
                del self._calls[call.number]
            if ended is not None:
                return ended
            has_waited = False


class _Call:
    """One command in another rank, over one channel to the controller."""

    def __init__(
        self, number: int, job_uid: str, client: _Client, say: Callable[[Message], None]
    ) -> None:
        self.number = number
        self.job_uid = job_uid
        self._client = client
        self._say = say
        self._window = Window()
        self._incoming: collections.deque[tuple[bytes, int]] = collections.deque()
        self._has_news = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_open = False
        self._is_lost = False
        self._ended: dict[str, Any] | None = None

    async def run(self, parameters: dict[str, Any]) -> dict[str, Any] | None:
        """Return how the command ended; None where the controller went before it had begun."""
        # The number of the request is that of the channel: both are never used twice.
        self._say(OpenChannel(self.number, self.number, "rank", parameters))
        feeding: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        try:
            while True:
                while self._incoming:
                    piece, size = self._incoming.popleft()
                    await self._client.send(_KINDS_OUT.get(piece[0], rank_launcher.DATA), piece[1:])
                    self._speak(Credit(self.number, size))
                if self._ended is not None:
                    return self._ended
                if self._is_lost:
                    return {"error": "the controller has gone, and the command with it"} if self._is_open else None  # fmt: skip
                if self._is_open and feeding is None:
                    feeding = loop.create_task(self._feed())
                self._has_news.clear()
                await self._client.unless_gone(self._has_news.wait())
        except BaseException:
            self._speak(ChannelEnded(self.number))
            raise
        finally:
            if feeding is not None:
                feeding.cancel()

    async def _feed(self) -> None:
        """Carry input, as far as there is credit for it."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, content = await self._client.next()
                piece = bytes([_KINDS_IN.get(kind, exec_pieces.DATA)]) + content
                while kind == rank_launcher.DATA and not self._window.has_room:
                    self._has_room.clear()
                    await self._has_room.wait()
                text = base64.b64encode(piece).decode("ascii")
                self._window.send(len(text), time.monotonic())
                self._speak(ChannelData(self.number, text))

    def _speak(self, message: Message) -> None:
        if not self._is_lost and self._ended is None:
            self._say(message)

    def take(self, message: ChannelData | Credit | ChannelEnded | Reply) -> None:
        if isinstance(message, Reply):
            self._is_open = message.ok
            if not message.ok:
                self._ended = {"error": message.message}
        elif isinstance(message, Credit):
            self._window.take(message.size_bytes, time.monotonic())
            self._has_room.set()
        elif isinstance(message, ChannelEnded):
            self._ended = {"error": message.message} if message.code else dict(message.body)
        else:
            with contextlib.suppress(binascii.Error):
                piece = base64.b64decode(message.data, validate=True)
                if piece:
                    self._incoming.append((piece, len(message.data)))
        self._has_news.set()

    def lose(self) -> None:
        self._is_lost = True
        self._has_news.set()

    def fail(self, message: str) -> None:
        self._speak(ChannelEnded(self.number))
        self._ended = {"error": message}
        self._has_news.set()


class _Client:
    """The program that asked, at the other end of the job's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(8)
        self._gone = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def header(self) -> tuple[int, list[str]]:
        """Read what is asked for; raises ValueError where it is not valid."""
        asked = json.loads(await self._reader.readuntil(b"\n"))
        rank, argv = asked["rank"], asked["argv"]
        is_valid = isinstance(rank, int) and isinstance(argv, list) and bool(argv)
        if not is_valid or not all(isinstance(word, str) for word in argv):
            raise ValueError("the request is not valid")
        self._reading = asyncio.get_running_loop().create_task(self._read())
        return rank, argv

    async def _read(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                if size > _READ_BYTES:
                    break
                await self._frames.put((kind, await self._reader.readexactly(size)))
        self._gone.set()

    async def next(self) -> tuple[int, bytes]:
        frame = await self._frames.get()
        assert frame is not None
        return frame

    async def unless_gone(self, waiting: Any) -> None:
        """Wait; raises ConnectionResetError when the program ends meanwhile."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(waiting), loop.create_task(self._gone.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._gone.is_set():
            raise ConnectionResetError

    async def send(self, kind: int, content: bytes) -> None:
        self._writer.write(HEAD.pack(kind, len(content)) + content)
        await self._writer.drain()

    async def notice(self, text: str) -> None:
        await self.send(rank_launcher.NOTICE, text.encode())

    async def end(self, body: dict[str, Any]) -> None:
        await self.send(rank_launcher.END, json.dumps(body).encode())
        if self._reading is not None:
            self._reading.cancel()


def _bound(path: str, owner: os.stat_result) -> socket.socket:
    """Make a socket that the account of the job may open, in place of one of an earlier agent."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(path)
    finally:
        os.umask(before)
    if owner.st_uid != os.geteuid():
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    assert stat.S_ISSOCK(os.lstat(path).st_mode)
    made.setblocking(False)
    return made


def _user_of(writer: asyncio.StreamWriter) -> int:
    peer = writer.get_extra_info("socket")
    # struct ucred: pid, uid, gid (unix(7)).
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)

"""
One connection on the agent's socket: bytes to messages, and who may speak at all.

The socket's mode keeps others out; the kernel's word on who is at the other end is asked all
the same, since a mode can be changed by hand.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from typing import Protocol

from fleetform.agents.host.blobs import BlobStore
from fleetform.agents.host.channels import Channels
from fleetform.agents.host.contact import boot_ms
from fleetform.agents.host.exec_channel import Commands
from fleetform.agents.host.forward_channel import Forwards
from fleetform.agents.host.outbox import Outbox
from fleetform.agents.protocol.frames import Decoder, FrameError, Message
from fleetform.agents.protocol.link import HEARTBEAT_SECONDS, Pulse
from fleetform.agents.protocol.messages import Heartbeat, Unknown

_WRITE_BUFFER_BYTES = 1 << 20
"""Beyond this, output waits on disk instead of in memory."""

_log = logging.getLogger("fleetform.agent")


class Listener(Protocol):
    """
    Receives what connections bring. `settle` writes what has been decided, and then sends
    what has been said about it.
    """

    def connected(self, connection: Connection) -> None: ...
    def received(self, connection: Connection, message: Message | Unknown) -> None: ...
    def writable(self, connection: Connection) -> None: ...
    def settle(self) -> None: ...
    def disconnected(self, connection: Connection) -> None: ...


class Connection(asyncio.Protocol):
    """
    Attributes:
        outbox: What is to be said here.
        channels: What is open here besides.
        is_looking: Its hello asked for the records alone.
    """

    outbox: Outbox
    channels: Channels
    is_looking: bool

    def __init__(
        self,
        listener: Listener,
        jobs: str,
        blobs: BlobStore,
        *,
        commands: Commands | None = None,
        forwards: Forwards | None = None,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.is_looking = False
        self._blobs = blobs
        self._commands = commands
        self._forwards = forwards
        self._heartbeat_seconds = heartbeat_seconds
        self._pulse: Pulse | None = None
        self._beats: asyncio.TimerHandle | None = None
        self._listener = listener
        self._jobs = jobs
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        self.outbox = Outbox(transport.write, self._jobs)
        self.channels = Channels(self._blobs, self.say, self._commands, self._forwards)
        peer = transport.get_extra_info("socket")
        if not _is_allowed(peer):
            _log.warning("connection.refused reason=uid")
            self._closing = True
            transport.abort()
            return
        self._listener.connected(self)

    def say(self, message: Message) -> None:
        """Say what nothing has asked for, too, such as the output of a command."""
        self.outbox.say(message)
        if not self._closing:
            self._listener.writable(self)

    def speak(self, protocol: int) -> None:
        """Use this version from now on, which both ends have agreed on."""
        if protocol >= 2 and self._pulse is None:
            self._pulse = Pulse()
            # At once: before its answer the host has heard no controller, as far as jobs count it.
            self.outbox.say(Heartbeat(boot_ms()))
            self._schedule_beat()
            self.outbox.limit_output()

    def _schedule_beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._beats = loop.call_later(self._heartbeat_seconds, self._beat)

    def _beat(self) -> None:
        assert self._pulse is not None
        assert self._transport is not None
        if self._pulse.is_dead():
            _log.warning("connection.silent")
            # What was not read will never be, so there is nothing to wait for.
            self._transport.abort()
            return
        self._schedule_beat()
        if not self._closing:
            self.outbox.say(Heartbeat(boot_ms()))
            self._listener.writable(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self._pulse is not None:
            self._pulse.hear()
        try:
            messages = self._decoder.feed(data)
        except FrameError as error:
            _log.warning("connection.garbled error=%s", error)
            self.close()
            return
        for message in messages:
            is_bare = isinstance(message, Heartbeat) and not message.at_ms
            if not self._closing and not is_bare:
                self._listener.received(self, message)

    def close(self) -> None:
        """Send what has been said, then end; nothing more is received."""
        self._closing = True
        # Nobody may hear of what is not written yet, also not as the last thing.
        self._listener.settle()
        if self._transport is not None:
            self._transport.close()

    def pause_writing(self) -> None:
        self.outbox.paused = True
        self.channels.pause(paused=True)

    def resume_writing(self) -> None:
        self.outbox.paused = False
        self.channels.pause(paused=False)
        self._listener.writable(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._beats is not None:
            self._beats.cancel()
        self.channels.hang_up()
        self._listener.disconnected(self)


def _is_allowed(peer: socket.socket) -> bool:
    # struct ucred: pid, uid, gid (unix(7)).
    size = struct.calcsize("3i")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = struct.unpack("3i", credentials)
    return user in {0, os.geteuid()}

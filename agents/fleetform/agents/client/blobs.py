"""
A file on its way to a host, in pieces.

The agent checks the digest when the last piece is there. It is computed here as well, from
the very bytes that are sent, so that a file which changed since it was declared is told from
a host that stored it wrongly.

`upload` goes on where an earlier connection was cut, compresses what a slow line carries, and
leaves the line to requests. `send` is how an agent of version 1 takes a file.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from fleetform.agents.client.errors import (
    ConnectionLost,
    ContentChanged,
    HelloRejected,
    RequestRefused,
)
from fleetform.agents.protocol.link import WINDOW_MAX_BYTES, WINDOW_MIN_BYTES, Window
from fleetform.agents.protocol.messages import Reply

PIECE_BYTES = 1 << 20
"""Small compared with the frame's 16 MiB, so that other requests do not wait behind one piece."""

_INLINE_BYTES_MAX = WINDOW_MIN_BYTES // 2
"""A content of this size is sent without asking first how much of it is there."""

_RAW_AFTER_FAILURE = 16
"""So many pieces of a file that do not shrink are sent as they are before the next is tried."""

_UNDER_WAY_MAX = 4
"""Covers a round trip of 40 ms at 100 MB/s, and bounds what is held in memory."""

Submit = Callable[[str, int, str, bool], "asyncio.Future[Reply]"]
"""Sends (digest, offset, base64, is last); the reply comes to the future."""


class Carrier(Protocol):
    """A session's channels, as far as a file needs them."""

    def open_blob(self, parameters: dict[str, Any]) -> tuple[int, asyncio.Future[Reply]]: ...
    async def await_room(self, channel: int) -> Window:
        """Wait until a piece may leave; raises RequestRefused once the agent takes no more."""

    def put(self, channel: int, data: bytes, *, deflated: bool) -> None: ...
    def close_channel(self, channel: int, outcome: str) -> asyncio.Future[Reply]: ...


async def upload(path: str, sha256: str, carrier: Carrier) -> None:
    """
    Send the file at `path`, which must have the digest `sha256`, over a channel of its own.

    Raises:
        ContentChanged: It has another, or cannot be read; the host has kept nothing.
        RequestRefused: The agent cannot store it.
    """
    resume = True
    while True:
        resumed_at, reply = await _upload(Path(path), sha256, carrier, resume=resume)
        if reply.ok:
            return
        if reply.code != "invalid" or not resumed_at:
            raise RequestRefused(reply)
        # What had arrived was not the beginning of this content; the agent has removed it.
        resume = False


async def _upload(path: Path, sha256: str, carrier: Carrier, *, resume: bool) -> tuple[int, Reply]:
    """Send it once; returns from which offset on, and what the agent says to the whole."""
    try:
        with path.open("rb") as file:
            asks = resume and os.fstat(file.fileno()).st_size > _INLINE_BYTES_MAX
            channel, opened = carrier.open_blob({"sha256": sha256, "resume": asks})
            outcome = "interrupted"
            try:
                offset = 0
                if asks:
                    offset = _offset_of(await opened)
                await _send_rest(file, offset, sha256, channel, carrier)
                outcome = "complete"
            except ContentChanged:
                outcome = "discard"
                raise
            finally:
                # Nothing can be said any more where the connection is the reason.
                with contextlib.suppress(ConnectionLost, HelloRejected):
                    closed = carrier.close_channel(channel, outcome)
    except OSError as error:
        raise ContentChanged(f"{path} cannot be read: {error.strerror or error}") from error
    _check(await opened)
    return offset, await closed


def _offset_of(opened: Reply) -> int:
    _check(opened)
    offset = opened.body.get("offset")
    return offset if type(offset) is int and offset >= 0 else 0


async def _send_rest(
    file: BinaryIO, offset: int, sha256: str, channel: int, carrier: Carrier
) -> None:
    digest = hashlib.sha256()
    while file.tell() < offset:
        piece = file.read(min(PIECE_BYTES, offset - file.tell()))
        if not piece:
            break  # The host has more than there is: its digest will be another.
        digest.update(piece)
        await asyncio.sleep(0)
    raw_pieces = 0
    while True:
        window = await carrier.await_room(channel)
        piece = file.read(min(window.piece_bytes, PIECE_BYTES))
        if not piece:
            break
        digest.update(piece)
        # A window at its maximum says that the line is faster than compressing.
        packed = piece
        if raw_pieces:
            raw_pieces -= 1
        elif window.limit < WINDOW_MAX_BYTES:
            packed = zlib.compress(piece, 1)
            if len(packed) > len(piece) * 9 // 10:
                packed, raw_pieces = piece, _RAW_AFTER_FAILURE
        carrier.put(channel, packed, deflated=packed is not piece)
    if digest.hexdigest() != sha256:
        raise ContentChanged(f"{file.name} has changed: its content is not {sha256}")


async def send(path: str, sha256: str, submit: Submit) -> None:
    """
    Send the file at `path`, which must have the digest `sha256`.

    Raises:
        ContentChanged: It has another, or cannot be read; the last piece has not been sent.
        RequestRefused: The agent refuses a piece; the ones after it are not sent.
    """
    under_way: collections.deque[asyncio.Future[Reply]] = collections.deque()
    for offset, piece, last in _pieces(Path(path), sha256):
        data = base64.b64encode(piece).decode("ascii")
        under_way.append(submit(sha256, offset, data, last))
        if len(under_way) >= _UNDER_WAY_MAX:
            _check(await under_way.popleft())
    while under_way:
        _check(await under_way.popleft())


def _pieces(path: Path, sha256: str) -> Iterator[tuple[int, bytes, bool]]:
    """Read (offset, piece, is last); an empty file is one empty piece."""
    digest = hashlib.sha256()
    offset = 0
    try:
        with path.open("rb") as file:
            piece = file.read(PIECE_BYTES)
            while following := file.read(PIECE_BYTES):
                digest.update(piece)
                yield offset, piece, False
                offset += len(piece)
                piece = following
    except OSError as error:
        raise ContentChanged(f"{path} cannot be read: {error.strerror or error}") from error
    digest.update(piece)
    if digest.hexdigest() != sha256:
        raise ContentChanged(f"{path} has changed: its content is not {sha256}")
    yield offset, piece, True


def _check(reply: Reply) -> None:
    if not reply.ok:
        raise RequestRefused(reply)

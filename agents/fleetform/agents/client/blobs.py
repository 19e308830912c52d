"""
A file on its way to a host, in pieces.

The agent checks the digest when the last piece is there. It is computed here as well, from
the very bytes that are sent, so that a file which changed since it was declared is told from
a host that stored it wrongly.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from fleetform.agents.client.errors import ContentChanged, RequestRefused
from fleetform.agents.protocol.messages import Reply

PIECE_BYTES = 1 << 20
"""Small beside the frame's 16 MiB, so that other requests are not held up behind one piece."""

_UNDER_WAY_MAX = 4
"""Covers a round trip of 40 ms at 100 MB/s, and bounds what is held in memory."""

Submit = Callable[[str, int, str, bool], "asyncio.Future[Reply]"]
"""Sends (digest, offset, base64, is last); the reply comes to the future."""


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

"""
What stands before every answer: only reading, only from where we were asked to listen.

A web page that a user visits may send requests to this machine. It cannot change anything,
since nothing here does, and it cannot read: no CORS header is ever sent, and a page that
rebinds its own name to 127.0.0.1 still sends that name as Host, which is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from email.utils import formatdate
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

READING = frozenset({"GET", "HEAD"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def allowed_hosts(listen_host: str) -> frozenset[str]:
    """Names by which this API may be called: those of loopback, and where it listens."""
    wildcard = listen_host in {"", "0.0.0.0", "::"}  # noqa: S104 -- compared with, not bound to
    return _LOOPBACK if wildcard else _LOOPBACK | {listen_host.lower()}


def host_name(header: str) -> str:
    """
    Take the name out of a Host header, without its port.

    RFC 9110 section 7.2: an IPv6 address stands in brackets, so that a colon within it is not
    taken for the port's.
    """
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _is_text(quoted: bytes) -> bool:
    """
    Tell whether a part of an address is text: UTF-8 without control characters, once unquoted.

    No name has any, PostgreSQL's text cannot hold NUL, and what is not UTF-8 would be replaced by
    a letter that was not asked for.
    """
    try:
        text = unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        return False
    return not any(letter < " " or letter == "\x7f" for letter in text)


class Guard:
    """
    Refuses foreign hosts, every method but GET and HEAD, and addresses that are not text.

    Answers HEAD without a body.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # A lifespan has no Host; there are no websockets to guard.
            await self._app(scope, receive, send)
            return
        names = [value.decode("latin-1") for key, value in scope["headers"] if key == b"host"]
        if len(names) != 1 or host_name(names[0]) not in self._hosts:
            # 421 Misdirected Request: RFC 9110 section 15.5.20.
            await _answer(send, 421, "host", "this API does not answer to that host name")
            return
        if scope["method"] not in READING:
            await _answer(send, 405, "method", "this API is read-only", allow=b"GET, HEAD")
            return
        if not _is_text(scope["raw_path"]) or not _is_text(scope["query_string"]):
            await _answer(
                send, 400, "invalid", "the URL is not UTF-8, or contains a control character"
            )
            return
        await self._app({**scope, "method": "GET"}, receive, _hardened(send, scope["method"]))


def _hardened(send: Send, method: str) -> Send:
    """Add headers to each answer, and drop the body of a HEAD's."""

    async def harden(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {
                **message,
                "headers": [
                    *message.get("headers", ()),
                    # State is stale the moment it is sent, and a cache is a copy without a guard.
                    (b"cache-control", b"no-store"),
                    (b"x-content-type-options", b"nosniff"),
                    # RFC 9110 section 6.6.1; uvicorn's own comes with its server alone.
                    (b"date", formatdate(usegmt=True).encode()),
                ],
            }
        elif method == "HEAD":
            message = {**message, "body": b""}
        await send(message)

    return harden


async def _answer(send: Send, status: int, code: str, message: str, allow: bytes = b"") -> None:
    body = json.dumps({"code": code, "message": message, "advice": ""}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if allow:
        headers.append((b"allow", allow))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""
The instance metadata service (IMDSv2), at 169.254.169.254 inside of the network of one host.

Without a session token every request is refused, as on an instance that requires tokens. The server is
a thread of the test; only its socket is in the namespace of the host.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ADDRESS = "169.254.169.254"
TOKEN_SECONDS_MAX = 21600

_CLONE_NEWNET = 0x40000000
_TTL = "X-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "X-aws-ec2-metadata-token"


@dataclass
class Metadata:
    """What the service knows about its instance; `notice` is set when spot capacity is taken away."""

    identity: str
    type: str
    zone: str
    address: str
    account: str
    user_data: str = field(default="", repr=False)
    notice: datetime | None = None

    def announce_end(self, seconds: float = 120.0) -> None:
        """Announce that the spot instance ends after so many seconds."""
        self.notice = datetime.fromtimestamp(time.time() + seconds, UTC)

    def read(self, path: str) -> str | None:
        """Return what is at a path below `/latest/`; None: there is nothing."""
        region = self.zone[:-1]
        document = {
            "accountId": self.account,
            "availabilityZone": self.zone,
            "instanceId": self.identity,
            "instanceType": self.type,
            "privateIp": self.address,
            "region": region,
        }
        values = {
            "dynamic/instance-identity/document": json.dumps(document),
            "meta-data/instance-id": self.identity,
            "meta-data/instance-type": self.type,
            "meta-data/local-ipv4": self.address,
            "meta-data/placement/availability-zone": self.zone,
            "meta-data/placement/region": region,
        }
        if self.user_data:
            values["user-data"] = self.user_data
        if self.notice is not None:
            at = self.notice.strftime("%Y-%m-%dT%H:%M:%SZ")
            values["meta-data/spot/instance-action"] = json.dumps(
                {"action": "terminate", "time": at}
            )
            values["meta-data/spot/termination-time"] = at
        return values.get(path)


class MetadataServer:
    def __init__(self, metadata: Metadata, namespace: str) -> None:
        """Listen in a network namespace, until `close`."""
        self.metadata = metadata
        command = ["ip", "-n", namespace, "address", "replace", f"{ADDRESS}/32", "dev", "lo"]
        subprocess.run(command, check=True, capture_output=True)
        listening = _listen(Path("/run/netns") / namespace)
        self._server = _Server(listening, handler(metadata))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def handler(metadata: Metadata) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests to the service of one instance."""
    return type("Handler", (_Handler,), {"metadata": metadata, "tokens": {}})


def _listen(namespace: Path) -> socket.socket:
    """Open a socket in another network namespace: a socket stays in the one of the thread that made it."""
    opened: list[socket.socket] = []

    def enter() -> None:
        descriptor = os.open(namespace, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)
        opened.append(socket.create_server((ADDRESS, 80)))

    # The thread ends, and with it its namespace; this one stays where it is.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return opened[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, handler: Any) -> None:
        super().__init__((ADDRESS, 80), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    metadata: Metadata
    tokens: dict[str, float]

    def do_PUT(self) -> None:
        seconds = self.headers.get(_TTL, "")
        if self.path != "/latest/api/token":
            self._answer(404)
        elif "X-Forwarded-For" in self.headers:
            self._answer(403)
        elif not seconds.isdigit() or not 1 <= int(seconds) <= TOKEN_SECONDS_MAX:
            self._answer(400)
        else:
            token = secrets.token_urlsafe(40)
            self.tokens[token] = time.monotonic() + int(seconds)
            self._answer(200, token, {_TTL: seconds})

    def do_GET(self) -> None:
        if self.tokens.get(self.headers.get(_TOKEN, ""), 0.0) < time.monotonic():
            self._answer(401)
            return
        found = self.metadata.read(self.path.removeprefix("/latest/"))
        self._answer(404 if found is None else 200, found or "")

    def _answer(
        self, status: int, text: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: Any) -> None:
        """Print nothing: tests ask the host what it read."""

"""
The EC2 front: an HTTP server on loopback that answers as AWS does, and has the faults that a test injects.

It checks each request (`cloud.wire`), records it, meets faults, and hands it to the region of the
account that signed it. moto is not made for threads: one call at a time reaches it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cloud import ec2
from cloud.account_services import answer_service
from cloud.catalog import ACCOUNT, Catalog, region_exists
from cloud.faults import Fault
from cloud.region import Hosts, Pace, Region
from cloud.wire import Call, Refusal, read_call, read_signer, write_refusal, write_result

ACCESS_KEY = "AKIAFLEETFORMTESTS00"


@dataclass
class Key:
    account: str
    expired: bool = False


@dataclass(frozen=True)
class Answered:
    """One call in the record of the front; `code` is that of the refusal, empty without one."""

    call: Call
    code: str

    @property
    def operation(self) -> str:
        return self.call.operation


@dataclass
class Front:
    address: Callable[[Mapping[str, str]], str]
    hosts: Hosts | None = None
    catalog: Catalog = field(default_factory=Catalog)
    keys: dict[str, Key] = field(default_factory=lambda: {ACCESS_KEY: Key(ACCOUNT)})
    faults: list[Fault] = field(default_factory=list)
    record: list[Answered] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _regions: dict[tuple[str, str], Region] = field(default_factory=dict)
    lag_seconds: float = 0.0

    def region(self, account: str, region: str) -> Region:
        key = (account, region)
        if key not in self._regions:
            self._regions[key] = Region(
                account,
                region,
                self.catalog,
                self.address,
                self.hosts,
                lag_seconds=self.lag_seconds,
            )
        return self._regions[key]

    def regions(self) -> list[Region]:
        return list(self._regions.values())

    def respond(
        self, headers: Mapping[str, str], body: bytes, method: str = "POST", path: str = "/"
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; raise `ConnectionError` when the caller hears nothing."""
        service = "ec2"
        try:
            service = read_signer(headers)[2]
            call = read_call(headers, body, method, path)
            met = self._met(call)
            result = self._answer(call, met)
        except Refusal as refusal:
            return (refusal.status, *write_refusal(service, refusal))
        if any(fault.loses_reply for fault in met):
            raise ConnectionError(call.operation)
        return (200, *write_result(call, result))

    def _met(self, call: Call) -> list[Fault]:
        with self.lock:
            met = [fault for fault in self.faults if fault.meets(call)]
        for fault in met:
            if fault.held is not None:
                fault.held.wait()
        return met

    def _answer(self, call: Call, met: list[Fault]) -> dict[str, Any]:
        with self.lock:
            code = "failed in the front"
            try:
                account = self._account(call)
                for fault in met:
                    if fault.refusal is not None:
                        raise fault.refusal
                if not region_exists(call.region):
                    # Its name would resolve to no address.
                    raise ConnectionError(call.region)
                if call.service == "ec2":
                    pace = next((fault.pace for fault in met if fault.pace), Pace())
                    region = self.region(account, call.region)
                    result = ec2.answer(region, call, replace(pace))
                else:
                    result = answer_service(call, account, self.catalog)
                code = ""
            except Refusal as refusal:
                code = refusal.code
                raise
            finally:
                self.record.append(Answered(call, code))
            return result

    def _account(self, call: Call) -> str:
        key = self.keys.get(call.access_key)
        if key is None and call.service == "ec2":
            raise Refusal(
                "AuthFailure", "AWS was not able to validate the provided access credentials", 401
            )
        if key is None:
            raise Refusal(
                "InvalidClientTokenId",
                "The security token included in the request is invalid.",
                403,
            )
        if key.expired:
            code = "RequestExpired" if call.service == "ec2" else "ExpiredToken"
            raise Refusal(code, "The security token included in the request is expired", 403)
        return key.account


class _Handler(BaseHTTPRequestHandler):
    # One call a connection: none is left open between two tests.
    protocol_version = "HTTP/1.0"
    front: Front

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, headers, answer = self.front.respond(
                self.headers, body, self.command, self.path
            )
        except ConnectionError:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *args: Any) -> None:
        """Print nothing: `Front.record` has every call."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that was killed; any other error fails the test that reads `errors`."""
        import sys

        error = sys.exception() if hasattr(sys, "exception") else sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self.errors.append(error)

    errors: list[BaseException | None]


def serve(front: Front) -> _Server:
    """Start the server on a free port of loopback; `shutdown` ends it."""
    handler = type("Handler", (_Handler,), {"front": front})
    server = _Server(("127.0.0.1", 0), handler)
    server.errors = []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition of the cloud, and fail when it does not come."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition did not come"
        time.sleep(0.02)

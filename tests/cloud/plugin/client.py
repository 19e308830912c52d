"""
Calls of AWS as the provider makes them: its retries, its messages, and loopback only.

The provider takes `max_retries` as the number of *attempts*, waits up to 300 s between two of them, and
retries whatever AWS answers with 5xx: with its default of 25, `InsufficientInstanceCapacity` (500) lasts
for 45 minutes on average.
"""

from __future__ import annotations

import ipaddress
import random
import sys
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError

ATTEMPTS = 25
"""The provider's default of `max_retries`."""
BACKOFF_SECONDS = 300
NETWORK_ATTEMPTS = 9
"""So often it tries an address that refuses connections, whatever `max_retries` says."""

_THROTTLED = {
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}


class CallError(Exception):
    """A call that AWS refused for good; `code` is empty when AWS did not answer."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Cancelled(Exception):
    """The engine asked to stop: what was begun is not waited for, as in the provider."""

    def __init__(self) -> None:
        super().__init__("context canceled")


@dataclass
class Aws:
    region: str = ""
    endpoints: dict[str, str] = field(default_factory=dict)
    attempts: int = ATTEMPTS
    default_tags: dict[str, str] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)
    account: str = ""
    _clients: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def _session(self) -> Any:
        return botocore.session.Session()

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                client = self._session.create_client(
                    service,
                    region_name=self.region,
                    endpoint_url=self.endpoints.get(service),
                    config=Config(retries={"total_max_attempts": 1}, max_pool_connections=64),
                )
                self._clients[service] = client
            return self._clients[service]

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a call, after as many attempts as the provider makes."""
        client = self._client(service)
        method = getattr(client, xform_name(operation))
        attempt = 1
        while True:
            self.check_cancelled()
            try:
                result: dict[str, Any] = method(**parameters)
            except NoCredentialsError as error:
                raise CallError("No valid credential sources found") from error
            except ClientError as error:
                if attempt >= self.attempts or not _is_retried(error):
                    raise CallError(_sentence(service, operation, error), _code(error)) from error
            except HTTPClientError as error:
                limit = min(self.attempts, NETWORK_ATTEMPTS)
                if attempt >= limit:
                    raise CallError(
                        f"operation error {service.upper()}: {operation}, request send failed: {error}"
                    ) from error
            except BotoCoreError as error:
                raise CallError(
                    f"operation error {service.upper()}: {operation}: {error}"
                ) from error
            else:
                return result
            self.wait(random.random() * min(2.0**attempt, BACKOFF_SECONDS))
            attempt += 1

    def ec2(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return self.call("ec2", operation, **parameters)

    def wait(self, seconds: float) -> None:
        """Wait, or raise `Cancelled` at once."""
        if self.cancelled.wait(seconds):
            raise Cancelled

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def _is_retried(error: ClientError) -> bool:
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status >= 500 or _code(error) in _THROTTLED


def _sentence(service: str, operation: str, error: ClientError) -> str:
    said, about = error.response["Error"], error.response["ResponseMetadata"]
    return (
        f"operation error {service.upper()}: {operation}, https response error "
        f"StatusCode: {about['HTTPStatusCode']}, RequestID: {about.get('RequestId', '')}, "
        f"api error {said['Code']}: {said['Message']}"
    )


def forbid_other_machines() -> None:
    """Refuse every connection of this process that leaves loopback, and every look-up of a name."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            _check_address(str(arguments[1][0]))
        elif event == "socket.getaddrinfo":
            _check_address(str(arguments[0]))

    sys.addaudithook(audit)


def _check_address(host: str) -> None:
    if host in {"localhost", "None", ""}:
        return
    try:
        inside = ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise PermissionError(f"the plugin of the tests dials loopback only, not {host}")

"""
The notice that a spot instance is taken away, from the metadata service of AWS.

The service answers on this host alone and wants a session token (IMDSv2). Two minutes before the end it has a document at
`spot/instance-action`, and before that there is none.
"""

from __future__ import annotations

import calendar
import http.client
import json
import logging
import os
import time

from fleetform.agents.host import layout

LOOK_SECONDS = 5.0
"""Between two looks, as EC2 advises."""

LAST_SECONDS = 10
"""Before the end what still runs is killed, so that its outcome is reported while the host can."""

_SERVICE = "169.254.169.254"
_TIMEOUT_SECONDS = 2.0
_TOKEN_SECONDS = 21600
_RENEW_SECONDS = 3600
_PATH = "/latest/meta-data/spot/instance-action"

_log = logging.getLogger("fleetform.agent")


def is_spot_host() -> bool:
    """Tell whether a job has said that this host is a spot instance; the current directory is the agent's root."""
    return os.path.exists(layout.SPOT)


def note_spot_host() -> None:
    """Keep that for the agent that follows this one."""
    try:
        with open(layout.SPOT, "ab"):
            pass
    except OSError as error:
        _log.warning("spot-notice.unwritten error=%s", error)


class SpotNotice:
    """Asks the service, with one token for an hour."""

    def __init__(self, service: str = _SERVICE) -> None:
        self._service = service
        self._token = ""
        self._renew_at = 0.0

    def ends_at(self) -> float | None:
        """
        Return when the instance ends, Unix seconds; None: no notice was given. It may block for some seconds.

        A service that does not answer is no notice.
        """
        try:
            return self._ask()
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            self._token = ""
            _log.warning("spot-notice.failed error=%s", error)
            return None

    def _ask(self) -> float | None:
        if not self._token or time.monotonic() >= self._renew_at:
            lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            status, self._token = self._request("PUT", "/latest/api/token", lifetime)
            if status != http.client.OK:
                raise OSError(f"the metadata service gives no token: status {status}")
            self._renew_at = time.monotonic() + _RENEW_SECONDS
        status, text = self._request("GET", _PATH, {"X-aws-ec2-metadata-token": self._token})
        if status == http.client.NOT_FOUND:
            return None
        if status != http.client.OK:
            raise OSError(f"the metadata service answers with status {status}")
        moment = time.strptime(json.loads(text)["time"], "%Y-%m-%dT%H:%M:%SZ")
        return float(calendar.timegm(moment))

    def _request(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._service, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("ascii", "replace")
        finally:
            connection.close()

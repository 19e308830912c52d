"""Reads what a host over SSH is like, with the time that the reading took."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetform.agents.client.bundle import bundle_name
from fleetform.providers.contract.checks import HostChecked
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.host_facts import account_name
from fleetform.providers.ssh import setup
from fleetform.providers.ssh.driver import drive

if TYPE_CHECKING:
    from fleetform.providers.ssh.connection import Connection


async def check_host(connection: Connection, request: InstanceRequest) -> HostChecked:
    """Read the facts of a host that was reached; what prevents that is part of the answer."""
    where = connection.where
    asked_at_ms = _now_ms()
    try:
        facts = await drive(connection, setup.check(request, account_name()))
    except ProviderError as error:
        advice = error.advice if isinstance(error, PermanentError) else ""
        return HostChecked(where, None, problem=str(error), advice=advice)
    return HostChecked(
        where,
        facts,
        asked_at_ms=asked_at_ms,
        answered_at_ms=_now_ms(),
        bundle=bundle_name(),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""What an apply waits for while hosts are replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fleetform.controllers.fleets import Departures
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.rollout import Template

TEMPLATE = Template("new", "drain", 1, (0, 1))


def host(number: int, state: InstanceState, digest: str = "new", **more: Any) -> Instance:
    name = f"gpus-{number}"
    return Instance(name, name, "gpus", number, state, template_digest=digest, **more)


READY, PROVISIONING = InstanceState.READY, InstanceState.PROVISIONING
CREATED: dict[str, Any] = {"provider": "aws", "endpoint": {"id": "i-1"}}
WAITING: dict[str, Any] = {"provider": "aws", "endpoint": {"refused_since_ms": 1}}


@pytest.mark.parametrize(
    ("hosts", "is_busy"),
    [
        ([host(0, READY), host(1, PROVISIONING, **CREATED)], False),
        ([host(0, READY), host(1, PROVISIONING, provider="aws")], True),
        ([host(0, READY), host(1, PROVISIONING, **WAITING)], False),
        ([host(0, READY), host(1, PROVISIONING, provider="aws", message="no image")], False),
        ([host(0, READY), host(1, PROVISIONING)], True),
        ([host(0, READY, "old"), host(1, PROVISIONING, **CREATED)], True),
    ],
    ids=[
        "it boots",
        "it is created",
        "it waits for capacity",
        "its creation has failed",
        "a host that boots at once",
        "another is replaced next",
    ],
)
def test_neither_capacity_nor_the_last_boot_is_waited_for(hosts, is_busy):
    """They may take hours, or never come: as in any step of a fleet, the instance joins later."""
    session = SimpleNamespace(host=object())
    departures = Departures(
        hosts=SimpleNamespace(session=lambda _uid: session),
        ledger=None, gate=None, progress=None, task_group=None, fence=1,
        clock=SimpleNamespace(now_ms=lambda: 1),
    )  # fmt: skip
    mirror = SimpleNamespace(
        instances=hosts, templates={"gpus": TEMPLATE}, allocations=(), all_jobs=lambda: ()
    )
    departures.round(mirror)
    assert departures.is_busy == is_busy

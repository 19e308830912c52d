"""What an apply waits for while hosts are replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fleetform.controllers.fleets import Departures
from fleetform.lifecycle.progress import FIRST_BOOT_MS
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
    departures = begin([], SimpleNamespace(now_ms=lambda: 1))
    departures.round(rows(hosts))
    assert departures.is_busy == is_busy


def begin(notices, clock):
    session = SimpleNamespace(host=object())
    return Departures(
        hosts=SimpleNamespace(session=lambda _uid: session),
        progress=SimpleNamespace(notice=lambda text, **_: notices.append(text)),
        ledger=None, gate=None, task_group=None, fence=1, clock=clock,
    )  # fmt: skip


def rows(hosts):
    return SimpleNamespace(
        instances=hosts, templates={"gpus": TEMPLATE}, allocations=(), all_jobs=lambda: ()
    )


def test_a_new_host_that_never_answers_is_waited_for_once():
    """For as long as a first boot takes, which is said before; then the failure says where its cause is."""
    notices: list[str] = []
    clock = SimpleNamespace(at_ms=1, now_ms=lambda: clock.at_ms)
    departures = begin(notices, clock)
    booting = host(1, PROVISIONING, message="connection refused", **CREATED)
    hosts = rows([host(0, READY, "old"), booting])
    for clock.at_ms in (1, FIRST_BOOT_MS):
        departures.round(hosts)
        assert departures.is_busy
        assert departures.failed == {"gpus": []}
    assert notices == [
        "waiting for host gpus-1 to answer, for up to 20m00s: other hosts of fleet gpus are replaced after that"
    ]
    clock.at_ms = FIRST_BOOT_MS + 1
    departures.round(hosts)
    assert not departures.is_busy
    (failure,) = departures.failed["gpus"]
    assert "connection refused; `fleetform fleet show gpus`" in failure
    assert "console output of i-1" in failure
    departures.round(rows([host(0, READY), host(1, READY)]))
    assert departures.failed == {"gpus": []}


def test_a_new_host_whose_creation_fails_is_a_failure():
    """It is not waited for, and the apply that replaces hosts says so."""
    departures = begin([], SimpleNamespace(now_ms=lambda: 1))
    failing = host(1, PROVISIONING, provider="aws", message="no image")
    departures.round(rows([host(0, READY, "old"), failing]))
    (failure,) = departures.failed["gpus"]
    assert failure.startswith("fleet/gpus: host gpus-1 is not created: no image; ")

"""Why a fleet or a volume is not as it should be: its last failure, and what its hosts wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.history import LoggedEvent
from fleetform.model.instance import InstanceState
from fleetform.model.rollout import EXCHANGED_TEXTS
from fleetform.model.rollout_status import RolloutStatus
from fleetform.spec.desired import ResourceKey
from fleetform.views.resource_why import resource_why
from fleetform.views.why import why_lines
from unit.views.rows import NOW, instance, live, resource

FLEET = ResourceKey("fleet", "local")
FAILED = LoggedEvent(
    "step.failed", NOW - 300_000, "the change of fleet/local failed: quota used up", FLEET
)
UPDATED = LoggedEvent("fleet.updated", NOW - 60_000, "was updated: 1 host", FLEET)
SCALED = LoggedEvent("fleet.scaled", NOW - 60_000, "1 host more", FLEET)


def lines(
    *events: LoggedEvent, instances: tuple[Any, ...] = (), kind: str = "fleet", **row: Any
) -> tuple[str, ...]:
    made = resource(kind, "local", {}, **row)
    return why_lines(resource_why(made, live(made, instances=instances), events=events, now_ms=NOW))


def bought(number: int, **more: Any) -> Any:
    endpoint = {"id": f"i-{number}", **more.pop("endpoint", {})}
    return instance(number, provider="aws", endpoint=endpoint, **more)


def waiting(number: int, **endpoint: Any) -> Any:
    return instance(
        number,
        provider="aws",
        state=InstanceState.PROVISIONING,
        message="waiting for capacity: g5.xlarge in us-east-1: no capacity",
        endpoint={"refused_since_ms": NOW - 60_000 * (number + 1), **endpoint},
    )


@pytest.mark.parametrize("events", [(FAILED,), (UPDATED, FAILED), (FAILED, SCALED)])
def test_the_last_failure(events: tuple[LoggedEvent, ...]) -> None:
    """It says why and when, and what to do."""
    assert lines(*events) == (
        "fleet local is present; 1 thing is not as applied:",
        "  - its last change failed 5m00s ago: quota used up",
        "help: correct what the message names, then `fleetform apply` tries again",
    )


def test_a_failure_is_over_after_a_change() -> None:
    """What succeeded since counts."""
    assert lines(FAILED, UPDATED) == ("fleet local is present; no drift is known.",)


def test_hosts_that_wait_for_capacity() -> None:
    """One sentence for all that wait for the same, with the longest wait, what was tried, and who asks again."""
    said = lines(instances=(waiting(0), waiting(1)))
    assert said[1] == (
        "  - hosts local-0, local-1 are not created, for 2m00s now: waiting for capacity: g5.xlarge in"
        " us-east-1: no capacity"
    )
    assert "a controller asks again by itself" in said[2]


def test_a_refusal_is_said_once() -> None:
    """The step that failed says the same as the host that waits."""
    host = waiting(0, is_refused=True)
    message = f"the change of fleet/local failed: instance local-0: {host.message}; apply again"
    said = lines(LoggedEvent("step.failed", NOW, message, FLEET), instances=(host,))
    assert "1 thing is not as applied" in said[0]
    assert [one for one in said if "no capacity" in one] == [said[1]]


def test_hosts_that_are_not_asked_for_any_more() -> None:
    """Only an apply asks again."""
    assert (
        "help: `fleetform apply` asks again" in lines(instances=(waiting(0, is_refused=True),))[2]
    )


def test_hosts_that_are_being_set_up() -> None:
    """With what they wait for."""
    joining = bought(0, state=InstanceState.PROVISIONING, message="waits for its SSH server")
    said = lines(instances=(joining,))
    assert said[1] == "  - host local-0 is not ready yet: waits for its SSH server"


def test_a_silent_instance_of_a_cloud() -> None:
    """Whether it still exists is the cloud's to say."""
    said = lines(instances=(bought(0, state=InstanceState.UNREACHABLE),))
    assert said[1:] == (
        "  - host local-0 does not answer",
        "help: `fleetform drift` asks the cloud whether the instance exists",
    )


def test_a_host_that_cannot_be_released() -> None:
    """It may answer: its controller cannot change the cloud. One that makes room for another is part of a rollout."""
    stuck = bought(
        0, state=InstanceState.TERMINATING, message="the Pulumi library is not installed"
    )
    said = lines(instances=(stuck, replace(stuck, message=EXCHANGED_TEXTS[0])))
    assert said[1:] == ("  - host local-0 is not released: the Pulumi library is not installed",)


def test_a_volume_that_could_not_be_created() -> None:
    """Its row keeps a uid only."""
    failed = LoggedEvent("step.failed", NOW, "the change of volume/local failed: no zone")
    said = lines(failed, kind="volume", archived=True)
    assert said[:2] == (
        "volume local is not created; 1 thing is not as applied:",
        "  - its last change failed 0s ago: no zone",
    )


def test_a_rollout_is_under_way() -> None:
    """It says how far it is, and what it waits for."""
    made = resource("fleet", "local", {})
    status = RolloutStatus(hosts=3, updated=1, waiting=2, busy=1)
    there = replace(live(made), exchanging={"local": status})
    said = why_lines(resource_why(made, there, now_ms=NOW))
    text = "rollout of fleet/local: 1 of 3 hosts have the new template; 2 wait (1 busy)"
    assert said[1] == f"  - {text}"
    assert "each once its jobs have ended; `fleetform fleet show local` lists the hosts" in said[2]

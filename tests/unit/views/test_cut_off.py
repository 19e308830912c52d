"""What `fleet show`, `why` and `status` say of hosts whose creation was cut off."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.overview import TroubledHost, UncreatedHost
from fleetform.views.attention import attention
from fleetform.views.cut_off import (
    ASKED_LATER,
    attention_text,
    hosts_cut_off,
    rows_cut_off,
    status_cut_off,
    status_left,
)
from fleetform.views.fleets import instance_rows
from fleetform.views.status import LedgerRow
from unit.views.test_status import NOTHING

UNTIL_MS = 1_795_378_262_000
THEN = "`fleetform drift` asks the cloud, and `fleetform apply` or a controller"
SAID = (
    "its creation was cut off, and whether its instance exists is unknown until 2026-11-22T20:11:02Z:"
    f" {THEN} adopts it, or creates it if there is none"
)
HOST = Instance(
    "new", "gpus-1", "gpus", 1, InstanceState.PROVISIONING,
    provider="aws", endpoint={"region": "us-east-1"},
)  # fmt: skip


def test_a_host_whose_creation_was_cut_off_is_not_called_not_created():
    """Also if its row has the problem of a controller, or no controller is running."""
    failed = replace(HOST, uid="failed", message="the call was cut off")
    leaving = replace(HOST, uid="leaving", state=InstanceState.TERMINATING)
    other = replace(HOST, uid="other", name="gpus-9")
    hosts = (HOST, failed, leaving, other)
    cut_off = {"new": UNTIL_MS, "failed": None, "leaving": UNTIL_MS}
    rows = rows_cut_off(instance_rows(hosts, is_controlled=False), cut_off, now_ms=UNTIL_MS - 1)
    said = {one.uid: (one.state, one.message) for one in rows}
    assert said["new"] == ("provisioning", SAID)
    assert said["failed"] == ("provisioning", SAID.replace(" until 2026-11-22T20:11:02Z", ""))
    assert said["leaving"][0] == "terminating"
    assert said["leaving"][1].endswith(f": {THEN} releases it")
    assert said["other"][0] == "not created"
    told = hosts_cut_off(hosts, cut_off, now_ms=UNTIL_MS - 1)
    assert [one.message for one in told][0::3] == [SAID, ""]


def test_a_moment_that_has_passed_is_not_named():
    """The time that the cloud has to list the instance is over, and no process has asked it since."""
    (row,) = rows_cut_off(instance_rows([HOST]), {"new": UNTIL_MS}, now_ms=UNTIL_MS)
    assert row.message == SAID.replace(" until 2026-11-22T20:11:02Z", "")


def test_hosts_that_no_controller_creates_need_attention():
    """After `fleet retry`, or a controller that was stopped; that a creation was cut off is said already."""
    found = replace(
        NOTHING,
        hosts={"provisioning": 2, "ready": 1},
        uncreated=tuple(UncreatedHost(one, one, "provisioning") for one in ("gpus-0", "gpus-1")),
    )
    rest = status_left(found, {"gpus-1": None})
    assert rest.hosts == {"provisioning": 1, "ready": 1, "not created": 1}
    assert rest.troubled_hosts == (TroubledHost("gpus-0", "not created", ASKED_LATER, None),)
    assert attention(LedgerRow("ready"), "", None, rest, None) == ("host gpus-0 is not created",)


def test_a_creation_that_was_cut_off_needs_attention():
    """It is named once, and not as a host that is not created."""
    found = replace(
        NOTHING,
        hosts={"not created": 1, "ready": 1},
        troubled_hosts=(TroubledHost("gpus-1", "not created", "the call was cut off", None),),
        uncreated=(UncreatedHost("new", "gpus-1", "not created"),),
    )
    rest, mine = status_cut_off(found, {"new": UNTIL_MS}, now_ms=UNTIL_MS - 1)
    assert rest.hosts == {"ready": 1, "provisioning": 1}
    assert mine == (TroubledHost("gpus-1", "provisioning", SAID, None),)
    assert attention(LedgerRow("ready"), "", None, rest, None) == ()
    assert attention_text(mine) == "the creation of host gpus-1 was cut off"
    assert attention_text(mine * 2) == "the creation of 2 hosts was cut off"
    assert status_cut_off(found, {}, now_ms=UNTIL_MS) == (found, ())
    assert attention_text(()) == ""

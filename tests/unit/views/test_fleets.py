"""What there is of a fleet, and what is in use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.instance import Allocation, Gpu, GpuUse, InstanceState
from fleetform.model.offers import CHOSEN_ZONE, GIVEN_UP, REFUSED_SINCE
from fleetform.model.override import Override, OverrideKind
from fleetform.views.fleets import (
    TONES,
    Amounts,
    cloud_table,
    fleet_rows,
    fleets_table,
    instance_rows,
    instances_table,
)
from fleetform.views.table import plain_lines
from unit.views.rows import GB, NOW, instance, live, resource

DOCUMENT = {"nodes": {"min": 2, "target": 2, "max": None}, "local": {}, "description": "here"}
HOSTS = (
    instance(1, state=InstanceState.UNREACHABLE, message="no answer"),
    instance(0, gpus=(Gpu("u", "NVIDIA A100", 80 * GB), Gpu("v", "NVIDIA A100", 80 * GB, 1))),
    instance(2, state=InstanceState.TERMINATED),
)
TAKEN = [Allocation("i0", "j", "r", 1500, 2 * GB, 0, ("u",))]


def test_a_fleet_sums_its_instances():
    """Those that are gone do not count, those that are silent do."""
    (row,) = fleet_rows(live(resource("fleet", "local", DOCUMENT), instances=HOSTS), TAKEN)
    assert (row.ready, row.instances, row.nodes_target, row.nodes_max) == (1, 2, 2, None)
    assert plain_lines(fleets_table([row])) == (
        "FLEET  READY  JOBS     CPU     MEMORY  GPU  SHARING  DESCRIPTION",
        "local  1/2       1  1.5/16  2GB/128GB  1/2  exact    here",
    )


def test_a_fleet_on_a_cloud_says_what_its_hosts_cost_now():
    """A host of unknown price is counted, and never costs nothing."""
    found = live(resource("fleet", "local", DOCUMENT), instances=HOSTS)
    (row,) = fleet_rows(found, hourly={"local": HourlyCost(1_006_000, 1)})
    assert (row.hourly_micros, row.unpriced_hosts) == (1_006_000, 1)
    (_, line) = plain_lines(fleets_table([row]))
    assert "$1.01/h + 1 host of unknown price" in line


def test_instances_come_in_order_of_number():
    """With what keeps one from taking jobs."""
    assert plain_lines(instances_table(instance_rows(HOSTS, TAKEN))) == (
        "INSTANCE  FLEET  STATE        ADDRESS    JOBS    CPU    MEMORY  GPU  MODEL        RUNS       MESSAGE",
        "local-0   local  ready        127.0.0.1     1  1.5/8  2GB/64GB  1/2  NVIDIA A100  r (GPU 0)  -",
        "local-1   local  unreachable  127.0.0.1     0    0/8   0B/64GB    -  -            -          no answer",
    )


@pytest.mark.parametrize(
    ("more", "state"),
    [({}, "waiting for capacity"), ({GIVEN_UP: True}, "refused"), ({"id": "i-1"}, "provisioning")],
)
def test_a_host_that_its_cloud_refuses_is_no_capacity(more, state):
    """It is not being created, and nothing can run there."""
    endpoint = {REFUSED_SINCE: 1, **more}
    waiting = instance(3, state=InstanceState.PROVISIONING, provider="aws", endpoint=endpoint)
    (row,) = instance_rows([waiting])
    assert (row.state, row.capacity == Amounts()) == (state, state != "provisioning")
    (fleet,) = fleet_rows(live(resource("fleet", "local", DOCUMENT), instances=[HOSTS[1], waiting]))
    assert (fleet.ready, fleet.instances) == (1, 2)
    assert fleet.capacity.cpu_millicores == (8000 if state != "provisioning" else 16_000)


def test_a_host_that_no_process_creates_is_not_created():
    """Without a controller it waits for a command; with one it is being created."""
    asked = instance(3, state=InstanceState.PROVISIONING, provider="aws", endpoint={})
    (row,) = instance_rows([asked], is_controlled=False)
    assert (row.state, row.message) == (
        "not created",
        "asked for by the next `fleetform apply` or `fleetform serve`",
    )
    (row,) = instance_rows([asked])
    assert (row.state, row.message) == ("provisioning", "")
    (row,) = instance_rows([replace(asked, endpoint={"id": "i-1"})], is_controlled=False)
    assert row.state == "provisioning"


def test_a_host_that_is_gone_is_no_capacity_and_is_not_ready():
    """It is named with when that was seen, and its price is not listed."""
    gone = instance(
        3,
        provider="aws",
        endpoint={"id": "i-1", "price_micros": 1},
        message="no answer",
        ended_at_ms=NOW,
    )
    (row,) = instance_rows([gone])
    assert (row.state, row.message) == (
        "gone",
        "i-1 no longer exists; seen at 2023-11-14T22:13:20Z",
    )
    assert row.capacity == Amounts()
    assert len(plain_lines(cloud_table([row]))) <= 1
    (fleet,) = fleet_rows(live(resource("fleet", "local", DOCUMENT), instances=[HOSTS[1], gone]))
    assert (fleet.ready, fleet.instances) == (1, 2)
    (leaving,) = instance_rows([replace(gone, state=InstanceState.TERMINATING)])
    assert leaving.state == "terminating"


def test_what_a_host_is_in_its_cloud_fits_a_screen():
    """Its id, type, price, zone and image; a host that the cloud has not created has none of them."""
    endpoint = {
        "id": "i-0f1e2d3c4b5a69788", "instance_type": "p4de.24xlarge", "region": "us-east-1",
        "spot": True, "image": "ami-0123456789abcdef0",
    }  # fmt: skip
    chosen = {**endpoint, CHOSEN_ZONE: "us-east-1b", "price_micros": 40_965_700}
    hosts = [
        instance(number, provider="aws", endpoint=one)
        for number, one in enumerate([chosen, {**endpoint, "spot": False}])
    ]
    rows = instance_rows(
        [*hosts, instance(2), instance(3, provider="aws", endpoint={"spot": True})]
    )
    lines = plain_lines(cloud_table(rows))
    assert lines == (
        "INSTANCE  ID                   TYPE           KIND       PLACE           $/H  IMAGE",
        "local-0   i-0f1e2d3c4b5a69788  p4de.24xlarge  spot       us-east-1b   $40.97  ami-0123456789abcdef0",
        "local-1   i-0f1e2d3c4b5a69788  p4de.24xlarge  on-demand  us-east-1   unknown  ami-0123456789abcdef0",
    )
    assert max(map(len, lines)) <= 100
    assert [one.name for one in rows if one.cloud is None] == ["local-2", "local-3"]


def test_runs_that_use_a_host_are_named_with_their_gpus():
    """Jobs of one run are one entry; JSON has all runs, and a line the first ones."""
    taken = [
        Allocation("i0", f"j{number}", run, 100, 0, 0, gpus)
        for number, (run, gpus) in enumerate(
            [("r1", ("v",)), ("r1", ("u",)), ("r2", ()), ("r3", ()), ("r4", ())]
        )
    ]
    names = {"r1": "train", "r2": "eval-2", "r3": "eval-10", "r4": "zip"}
    (row,) = instance_rows(HOSTS[1:2], taken, names)
    assert [(one.run, one.jobs, one.gpus) for one in row.users] == [
        ("eval-2", 1, ()),
        ("eval-10", 1, ()),
        ("train", 2, (0, 1)),
        ("zip", 1, ()),
    ]
    (_, line) = plain_lines(instances_table([row]))
    assert line.endswith("eval-2, eval-10, train (GPU 0,1) and 1 more")


def test_a_process_outside_fleetform_that_uses_gpus_is_named():
    """Once for all its GPUs, behind what else there is to say; JSON has it by GPU."""
    use = GpuUse(123, "ada", "python")
    cards = tuple(replace(gpu, used_by=use) for gpu in HOSTS[1].gpus)
    (row,) = instance_rows([replace(HOSTS[1], gpus=cards, drained="tests")])
    assert row.message == (
        "reason: tests; GPUs 0,1 are used by python (pid 123, user ada) outside fleetform"
    )
    assert [(one.gpu, one.pid) for one in row.gpu_users] == [(0, 123), (1, 123)]
    (row,) = instance_rows([replace(HOSTS[1], gpus=cards[1:])])
    assert row.message == "GPU 1 is used by python (pid 123, user ada) outside fleetform"


def test_a_declared_device_that_a_host_does_not_have_is_named():
    """Of a host that does not answer, nothing is known."""
    ready = replace(HOSTS[1], declared={"devices": [0, 3]})
    (row,) = instance_rows([ready])
    assert row.message == "the host has no GPU 3, which `devices` declares"
    (row,) = instance_rows([replace(ready, state=InstanceState.UNREACHABLE)])
    assert row.message == ""


def test_a_quarantined_host_says_why_and_how_that_ends():
    """Silence is the more important state, and a drain by hand is no quarantine."""
    why = Override(3, OverrideKind.QUARANTINE, "host/local-0", "GPU 0 is lost", "the controller", 1)
    others = (
        replace(why, target="host/local-1", number=4),
        replace(why, kind=OverrideKind.DRAIN, reason="tests", number=2),
    )
    ready, silent = instance_rows(HOSTS, TAKEN, overrides=(*others, why))
    assert (ready.state, ready.jobs) == ("quarantined", 1)
    assert ready.message == "GPU 0 is lost; `fleetform emergency lift 3` ends it"
    assert (silent.state, silent.message) == ("unreachable", "no answer")
    taken_away = replace(why, reason="the cloud takes the host away")
    (ready, _) = instance_rows(HOSTS, TAKEN, overrides=(taken_away,))
    assert ready.message == (
        "the cloud takes the host away; the quarantine ends with the host, which `fleetform apply` or demand"
        " replaces"
    )
    found = live(resource("fleet", "local", DOCUMENT), instances=HOSTS)
    (fleet,) = fleet_rows(replace(found, overrides=(why,)), TAKEN)
    assert fleet.ready == 0


def test_a_silent_host_says_when_it_was_last_heard():
    """Of a ready one that is no news: the ledger records what it says, and not each sign of life."""
    hosts = [
        replace(instance(0), seen_at_ms=1_000),
        replace(HOSTS[0], seen_at_ms=1_000),
    ]
    titles, ready, silent = plain_lines(instances_table(instance_rows(hosts), now_ms=66_000))
    assert "LAST HEARD" in titles
    assert ("ago" in ready, "1m05s ago" in silent) == (False, True)


def test_a_quarantined_host_is_heard_like_others():
    """One that answers has a connection, as a ready one; a silent one says when it was last heard."""
    hosts = [replace(one, seen_at_ms=1_000) for one in HOSTS]
    both = [
        Override(one, OverrideKind.QUARANTINE, f"host/local-{one}", "broken", "the controller", 1)
        for one in range(2)
    ]
    rows = instance_rows(hosts, overrides=both)
    _, answers, silent = plain_lines(instances_table(rows, now_ms=66_000))
    assert ("quarantined" in answers, "ago" in answers) == (True, False)
    assert ("unreachable" in silent, "1m05s ago" in silent) == (True, True)


def test_a_quarantined_host_that_recovers_is_recovering():
    """What ends in seconds stays visible, as in `status`."""
    why = Override(3, OverrideKind.QUARANTINE, "host/local-0", "GPU 0 is lost", "the controller", 1)
    recovering = replace(instance(0), state=InstanceState.RECOVERING)
    assert [one.state for one in instance_rows([recovering], overrides=[why])] == ["recovering"]


def test_a_host_that_never_answered_has_its_declared_address():
    """The ledger learns the address at the first hello."""
    new = replace(instance(0), endpoint={"hostname": "gpu1"}, install_id="")
    assert [row.address for row in instance_rows([new, replace(new, install_id="x")])] == [
        "gpu1",
        "127.0.0.1",
    ]


def test_hosts_over_ssh_come_by_name():
    """Not by the order in which they were declared."""
    names = ("gpu1", "gpu10", "gpu2")
    hosts = [
        replace(instance(number), name=name, endpoint={"hostname": name})
        for number, name in enumerate(names)
    ]
    assert [row.name for row in instance_rows(hosts)] == ["gpu1", "gpu2", "gpu10"]


def test_a_leaving_host_says_what_it_waits_for():
    """Draining is seen: how many jobs are left, or that none is."""
    leaving = [instance(number, state=InstanceState.TERMINATING) for number in range(2)]
    assert [row.message for row in instance_rows(leaving, TAKEN)] == [
        "is released once its 1 job has ended",
        "is being released",
    ]


def test_every_state_has_a_tone():
    """A new state needs one."""
    assert set(TONES) == set(InstanceState)


def test_a_host_is_draining_as_long_as_it_has_jobs():
    """Then it is drained; the reason is the same, and the fleet counts both."""
    hosts = [replace(one, state=InstanceState.READY, drained="loud", message="") for one in HOSTS]
    jobs = [Allocation(hosts[0].uid, "j", "r", 100, 0, 0, ())]
    rows = instance_rows(hosts[:2], jobs, {})
    assert sorted(one.message for one in rows) == ["reason: loud", "reason: loud; 1 job to go"]
    lines = plain_lines(instances_table(rows))
    assert sorted(line.split()[2] for line in lines[1:]) == ["drained", "draining"]

"""What there is of a fleet, and what is in use."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.instance import Allocation, Gpu, InstanceState
from fleetform.views.fleets import TONES, fleet_rows, fleets_table, instance_rows, instances_table
from fleetform.views.table import plain_lines
from unit.views.rows import GB, instance, live, resource

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


def test_instances_come_in_order_of_number():
    """With what keeps one from taking jobs."""
    assert plain_lines(instances_table(instance_rows(HOSTS, TAKEN))) == (
        "INSTANCE  FLEET  STATE        ADDRESS    JOBS    CPU    MEMORY  GPU  MODEL        MESSAGE",
        "local-0   local  ready        127.0.0.1     1  1.5/8  2GB/64GB  1/2  NVIDIA A100  -",
        "local-1   local  unreachable  127.0.0.1     0    0/8   0B/64GB    -  -            no answer",
    )


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

"""A fleet on AWS that follows demand: a sweep brings hosts in, and idle ones leave again."""

from __future__ import annotations

import json

import pytest

from integration.cloud.aws_site import own_groups, until

pytestmark = pytest.mark.waits

HOSTS_BOOT = True

SWEEP = """
type: task
name: sweep
fleets: [gpus]
matrix: {seconds: [1, 2, 40]}
commands: ["sleep ${{ matrix.seconds }}"]
"""

RULES = "run_as: root\nsharing: whole\nidle_duration: 5s\n"


def states(site):
    """The state of each element of the sweep, by its seconds."""
    rows = json.loads(site.run("ps", "--all", "--format", "json"))
    return {row["name"].partition("=")[2].rstrip("]"): row["state"] for row in rows}


def names(cloud):
    return sorted(one.tags["Name"] for one in cloud.instances())


def test_a_sweep_scales_the_fleet_and_idle_hosts_leave(site, cloud):
    """Three elements bring in three hosts as one batch; idle hosts leave while the third works, and then it does too."""
    site.declare("0..3", more=RULES)
    (site.root / "sweep.yaml").write_text(SWEEP)
    shown = site.run("plan")
    assert "0 to 3 hosts by demand" in shown
    with site.start("apply", "-y") as process:
        until(lambda: len(cloud.instances()) == 3)
        busy = until(lambda: "running" in states(site).values() and busy_host(site))
        until(lambda: len(cloud.instances()) == 1)
        assert names(cloud) == [busy]
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert set(states(site).values()) == {"done"}
    # The apply is over, and the background controller releases the last host.
    until(lambda: not (cloud.instances() or own_groups(cloud)))
    assert len(cloud.calls("RunInstances")) == 3
    assert site.plan()["resource_changes"] == []
    history = site.run("blame", "fleet/gpus", "--events")
    assert "3 hosts are being created for 3 waiting runs" in history
    assert "is being released: it had no jobs for" in history


def busy_host(site):
    """The name of the host on which the longest element runs; empty before it does."""
    found = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))
    return next(
        (
            one["name"]
            for one in found["instances"]
            if any("seconds=40" in user["run"] for user in one["users"])
        ),
        "",
    )


def test_no_hosts_at_all(site, cloud):
    """With `nodes: 0..0` all hosts leave, and nothing is left in the account."""
    site.declare("{min: 2, max: 3}", more=RULES)
    site.run("apply", "-y")
    assert names(cloud) == ["gpus-0", "gpus-1"]
    site.declare("0..0", more=RULES)
    site.run("apply", "-y")
    until(lambda: not (cloud.instances() or own_groups(cloud)))

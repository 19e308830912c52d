"""The plugin of the tests under the real engine: what a program declares comes into being, once, and goes away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cloud import faults
from cloud.front import wait_until
from cloud.pulumi_program import pulumi_program
from integration.cloud.conftest import Stacks

HERE = Path(__file__)
COUNTED = "FLEETFORM_TEST_PACKETS_COUNTED"


def tagged(cloud):
    """Return the names of the instances that exist, as their tags say them."""
    return sorted(row.tags.get("uid", "") for row in cloud.instances())


def terminate_all(cloud):
    cloud.client().terminate_instances(InstanceIds=[row.id for row in cloud.instances()])


def test_a_fleet_from_preview_to_destroy(request, pulumi, tmp_path):
    """
    What a preview announces is created, a second one is empty, and nothing is left after `destroy`.

    As root all of it happens in a network whose only way out counts packets, and none is sent.
    """
    if os.geteuid() == 0 and COUNTED not in os.environ:
        run_where_packets_are_counted(tmp_path)
        return
    names = ("cloud", "stacks", "image", "public_key")
    cloud, stacks, image, public_key = map(request.getfixturevalue, names)
    arguments = {"image": image, "public_key": public_key}
    operations = ["preview", "up", "state", "preview", "refresh", "state", "destroy"]
    preview, up, made, again, refresh, refreshed, destroy = stacks.run(
        "fleet", "fleet", *operations, **arguments
    )
    assert preview["counts"] == {"create": 11}
    assert up["counts"] == {"create": 11}
    assert again["counts"] == {"same": 11}
    assert refresh["counts"] == {"same": 11}
    assert destroy["counts"] == {"delete": 11}
    # Of all these only `up` created instances, and each of them once.
    assert sorted(row.tags["uid"] for row in cloud.instances(ended=True)) == ["efa", "host"]
    (host,) = [row for row in made["resources"] if row["urn"].endswith("Instance::host")]
    volumes = [row for row in refreshed["resources"] if row["type"].endswith("Attachment")]
    assert volumes[0]["inputs"]["instanceId"] == host["id"]
    assert up["outputs"]["address"].startswith("127.")
    ec2 = cloud.client()
    assert cloud.instances() == []
    assert ec2.describe_placement_groups()["PlacementGroups"] == []
    assert ec2.describe_key_pairs()["KeyPairs"] == []
    assert ec2.describe_addresses()["Addresses"] == []
    groups = ec2.describe_security_groups()["SecurityGroups"]
    assert [row["GroupName"] for row in groups] == ["default"]
    assert [row for row in ec2.describe_volumes()["Volumes"] if row["State"] == "available"] == []


def test_drift_by_hand_is_seen_and_repaired(cloud, stacks, image):
    """A terminated instance is created again, and a changed tag is set back."""
    stacks.run("drift", "hosts", "up", image=image, count=2)
    first, second = (row.id for row in cloud.instances())
    cloud.client().terminate_instances(InstanceIds=[first])
    cloud.client().create_tags(Resources=[second], Tags=[{"Key": "uid", "Value": "by hand"}])
    refresh, up, destroy = stacks.run(
        "drift", "hosts", "refresh", "up", "destroy", image=image, count=2
    )
    assert (refresh["counts"]["delete"], refresh["counts"]["update"]) == (1, 1)
    assert up["counts"]["create"] == 1
    assert up["counts"]["update"] == 1
    assert destroy["counts"]["delete"] == 3
    ended = {row.id: row.tags for row in cloud.instances(ended=True)}
    assert ended[second]["uid"] in {"host-0", "host-1"}
    assert cloud.instances() == []


def test_what_replaces_an_instance(cloud, stacks, image):
    """Tags and type change in place; another image needs another instance, and the plan says why."""
    stacks.run("changes", "hosts", "up", image=image)
    (before,) = cloud.instances()
    in_place = {"tags": {"uid": "host-0", "more": "yes"}, "instance_type": "g5.2xlarge"}
    other = cloud.front.catalog.publish_image("another")
    (replace,) = stacks.run("changes", "hosts", "preview", image=other)
    assert replace["steps"]["replace"] == ["ami"]
    preview, _, again = stacks.run(
        "changes", "hosts", "preview", "up", "preview", image=image, **in_place
    )
    assert preview["steps"] == {"update": ["instanceType", "tags.more"]}
    assert again["counts"] == {"same": 2}
    (after,) = cloud.instances()
    assert (after.id, after.type, after.tags["more"]) == (before.id, "g5.2xlarge", "yes")
    terminate_all(cloud)


def test_no_capacity_ends_after_the_attempts_of_the_provider(cloud, stacks, image):
    """`max_retries` is the number of attempts; one that fails among others leaves the others."""
    fault = cloud.inject(faults.no_capacity("p5.48xlarge"))
    provider = {"region": "us-east-1", "max_retries": 2}
    up, state = stacks.run(
        "capacity", "hosts", "up and continue", "state", image=image, count=2, scarce="p5.48xlarge", provider=provider
    )  # fmt: skip
    assert "api error InsufficientInstanceCapacity: We currently do not have" in up["error"]
    assert fault.met == 2
    assert tagged(cloud) == ["host-0", "host-1"]
    kept = [row["id"] for row in state["resources"] if row["type"].endswith("Instance")]
    assert sorted(kept) == sorted(row.id for row in cloud.instances())
    terminate_all(cloud)


def test_throttled_and_lost_replies_buy_once(cloud, stacks, image):
    """Within one call the token of the attempt before is used again: one instance, whatever is lost."""
    throttle = cloud.inject(faults.throttled("RunInstances"))
    lost = cloud.inject(faults.lost_reply("RunInstances"))
    (up,) = stacks.run("lost", "hosts", "up", image=image)
    assert up["counts"] == {"create": 2}
    assert (throttle.met, lost.met) == (1, 1)
    assert tagged(cloud) == ["host-0"]
    terminate_all(cloud)


def test_an_instance_that_fails_after_its_creation_is_in_the_state(cloud, stacks, image):
    """The message names the reason, the state has the id, and the next `up` creates another one."""
    cloud.inject(faults.fails_after_create())
    up, state = stacks.run("broken", "hosts", "up", "state", image=image)
    assert "unexpected state 'terminated', wanted target 'running'" in up["error"]
    assert "Server.InternalError" in up["error"]
    assert cloud.instances() == []
    (kept,) = [row for row in state["resources"] if row.get("initErrors")]
    assert kept["id"] in {row.id for row in cloud.instances(ended=True)}
    stacks.run("broken", "hosts", "refresh", "up", image=image)
    assert tagged(cloud) == ["host-0"]
    terminate_all(cloud)


def test_accounts_and_credentials_are_checked_before_anything(cloud, stacks, image):
    """Expired credentials and another account end the preview with the sentence of AWS."""
    account = "555555555555"
    provider = {"region": "us-east-1", "allowed_account_ids": ["123456789012"]}
    given = {"image": image, "provider": provider, "account": account}
    (preview,) = stacks.run("account", "hosts", "preview", **given)
    assert f"AWS account ID not allowed: {account}" in preview["error"]
    cloud.expire(cloud.access_key(account))
    (preview,) = stacks.run("account", "hosts", "preview", **given)
    assert "api error ExpiredToken" in preview["error"]
    assert cloud.instances() == []


def test_an_unknown_input_fails_the_check(cloud, stacks, image):
    """An input that the plugin does not act on is refused, so that no program is right only here."""
    (preview,) = stacks.run("unknown", "hosts", "preview", image=image, hibernation=True)
    assert "the plugin of the tests does not know this input" in preview["error"]


def test_a_killed_engine_leaves_a_pending_operation(cloud, stacks, image):
    """The call is made after the kill: the instance exists, and the state has the operation and no id."""
    fault = cloud.inject(faults.held("RunInstances"))
    killed = Stacks(cloud)
    with killed.process:
        killed.ask("killed", "hosts", "up", image=image)
        assert fault.arrived.wait(120)
        kill_session(killed.process.pid)
    cloud.remove(fault)
    wait_until(lambda: tagged(cloud) == ["host-0"])
    (state,) = stacks.run("killed", "hosts", "state", image=image)
    assert [row["type"] for row in state["pending_operations"]] == ["creating"]
    assert [row for row in state["resources"] if row["type"].endswith("Instance")] == []
    terminate_all(cloud)


def kill_session(session):
    """Kill every process of a session: plugins have process groups of their own."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(path.parent.name), 9)
        except (FileNotFoundError, ProcessLookupError):
            continue


INSIDE = """\
set -e
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
mount -t sysfs sysfs /sys
ip link set lo up
ip link add out type veth peer name far
ip address add 192.0.2.1/24 dev out
ip link set out up; ip link set far up
ip neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:02 dev out nud permanent
ip route add default via 192.0.2.2
sent=/sys/class/net/out/statistics/tx_packets
cat $sent
"$PYTHON" -m pytest -q -p no:xdist -p no:cacheprovider --basetemp="$FOLDER/inside" "$TEST" >"$FOLDER/output" 2>&1
cat $sent
"$PYTHON" -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b"", ("203.0.113.1", 9))' 2>"$FOLDER/errors"
cat $sent
"""


def run_where_packets_are_counted(folder):
    """Run the test of the fleet in a network of its own, and expect that no packet leaves it."""
    test = f"{HERE}::test_a_fleet_from_preview_to_destroy"
    environment = {"PYTHON": sys.executable, "FOLDER": str(folder), "TEST": test, COUNTED: "yes"}
    finished = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", INSIDE],
        cwd=HERE.parents[3], env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = folder / "output"
    said = output.read_text() if output.exists() else ""
    assert finished.returncode == 0, finished.stderr + said
    before, after, with_a_packet = map(int, finished.stdout.split())
    assert after == before
    # The way out counts: a single packet is seen.
    assert with_a_packet == before + 1


def test_the_first_pulumi_is_that_of_the_tests(cloud, pulumi):
    """The environment of commands finds the CLI and the plugin in the folder of the cloud."""
    script = "command -v pulumi; command -v pulumi-resource-aws"
    found = subprocess.check_output(
        ["sh", "-c", script], env=cloud.environment(), text=True
    ).split()
    assert [Path(path).parent for path in found] == [cloud.programs] * 2
    assert Path(found[0]).resolve() == pulumi_program().resolve()

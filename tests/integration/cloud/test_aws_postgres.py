"""
Fleets and volumes on AWS where the ledger is on PostgreSQL, so controllers may run on several machines.

Each machine has folders of its own for state, settings and cache; they share the database, the configuration and the cloud.
"""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest

from cloud import faults
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from integration.cloud.aws_site import killed_during, own_groups, until
from postgres_server import PASSWORD

pytestmark = pytest.mark.waits

UID = "0123456789abcdef" * 2
VOLUME = """
type: volume
name: data
backend: aws
region: us-east-1
availability_zone: us-east-1a
size: {size}GB
deletion_policy: delete
aws: {{account: "123456789012"}}
"""


@pytest.fixture
def first(site, postgres):
    """The machine on which the environment is applied first."""
    connection = Connection(Address.parse(postgres.url), schema=schema_of(UID))
    connection.script(f"DROP SCHEMA IF EXISTS {schema_of(UID)} CASCADE")
    connection.close()
    site.variables["FLEETFORM_LEDGER"] = postgres.url
    return site


@pytest.fixture
def second(first):
    """Another machine with the same configuration and database."""
    machine = copy.copy(first)
    folder = first.root.parent / "second"
    homes = {name: f"{folder}/{name}" for name in ("STATE", "CONFIG", "CACHE")}
    machine.variables = {
        **first.variables,
        **{f"FLEETFORM_{name}_HOME": path for name, path in homes.items()},
        "PULUMI_HOME": f"{folder}/pulumi",
    }
    return machine


def secret_files(machine):
    return [
        f"{machine.variables['FLEETFORM_STATE_HOME']}/environments/{UID}/pulumi/id_ed25519",
        f"{machine.variables['FLEETFORM_CONFIG_HOME']}/pulumi/{UID}.passphrase",
    ]


def copy_secrets(source, target):
    for old, new in zip(secret_files(source), secret_files(target), strict=True):
        # Only hosts need the key.
        if Path(old).exists():
            Path(new).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy(old, new)


def test_another_machine_takes_over(first, second, cloud):
    """It needs the key and the passphrase of the first one, and then changes the same stacks."""
    first.declare(2)
    first.run("apply", "-y")
    assert len(cloud.instances()) == 2
    first.run("controller", "stop")

    first.declare(1)
    said = second.run("apply", "-y", "--allow-destroy")
    print(said)
    assert (
        f"{UID}.passphrase, the passphrase of the stacks of this environment: copy it from" in said
    )
    assert len(cloud.instances()) == 2
    copy_secrets(first, second)
    until(lambda: len(cloud.instances()) == 1)
    assert [one.tags["Name"] for one in cloud.instances()] == ["gpus-0"]
    assert second.plan()["resource_changes"] == []

    first.declare(0)
    second.run("apply", "-y", "--allow-destroy")
    assert cloud.instances() == []
    first.declare(1)
    first.run("apply", "-y")
    assert len(cloud.instances()) == 1
    assert len(own_groups(cloud)) == 1
    assert_no_password(first)


def assert_no_password(machine):
    """Neither files of the machines nor the state of the stacks have the password of the database."""
    secret = PASSWORD.encode()
    found = [
        path
        for path in machine.root.parent.rglob("*")
        if path.is_file() and secret in path.read_bytes()
    ]
    assert found == []
    connection = Connection(
        Address.parse(machine.variables["FLEETFORM_LEDGER"]), schema=schema_of(UID)
    )
    rows = connection.execute(
        "SELECT convert_from(decode(data->>'data', 'base64'), 'UTF8') FROM pulumi_state"
        " UNION ALL SELECT content FROM stack_records"
    ).fetchall()
    connection.close()
    assert rows
    assert not any(PASSWORD in text for (text,) in rows)


def test_a_machine_dies_during_a_create(first, second, cloud):
    """Another one completes what the killed controller began, and nothing exists twice."""
    first.declare(3)
    cloud.inject(faults.slow_create(2.0))
    killed_during(first, cloud, "RunInstances", calls=3)
    copy_secrets(first, second)
    second.run("apply", "-y")
    uids = [one.tags["fleetform:uid"] for one in cloud.instances()]
    assert len(uids) == len(set(uids)) == 3
    assert len(own_groups(cloud)) == 1
    assert second.plan()["resource_changes"] == []


def test_another_machine_grows_and_deletes_a_disk(first, second, cloud):
    """The stack of a volume needs the passphrase and no key."""

    def sizes():
        return [one["Size"] for one in cloud.client().describe_volumes()["Volumes"]]

    document = first.root / "volume.yaml"
    document.write_text(VOLUME.format(size=10))
    first.run("apply", "-y")
    assert sizes() == [10]
    document.write_text(VOLUME.format(size=20))
    copy_secrets(first, second)
    second.run("apply", "-y")
    assert sizes() == [20]
    document.unlink()
    second.run("apply", "-y", "--allow-destroy")
    assert sizes() == []

"""What a request says of an instance on AWS, and what is recorded of its stack."""

from __future__ import annotations

from dataclasses import replace

from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.pulumi.aws.batch_record import (
    SharedRecord,
    read_record,
    read_records,
    read_shared,
    write_record,
    write_shared,
)
from fleetform.providers.pulumi.aws.place import account_of, record_of, shared_of, stack_of
from fleetform.providers.pulumi.aws.program import SharedParts
from fleetform.providers.pulumi.engine.file_records import FileRecords
from fleetform.providers.pulumi.engine.stack_settings import StackSettings

PLACE = {
    "account": "123456789012",
    "region": "us-east-1",
    "instance_type": "g5.xlarge",
    "image": "ami-1",
    "root_gb": 100,
    "ssh_from": ["203.0.113.7/32"],
    "stack": "gpus-1234",
}
REQUEST = InstanceRequest("u" * 32, "gpus-0", "gpus", {}, provider="aws", endpoint=PLACE)
ACCOUNT = account_of(PLACE, "e1", "")


def without_stack(request):
    endpoint = {name: value for name, value in request.endpoint.items() if name != "stack"}
    return replace(request, endpoint=endpoint)


def test_a_host_that_takes_the_place_of_another_has_a_stack_of_its_own():
    """The stack that a step names counts; without one it follows from the uid."""
    assert stack_of(REQUEST) == "gpus-1234"
    assert stack_of(without_stack(REQUEST)) == "gpus-uuuuuuuuuuuu"


def test_names_of_stacks_fit(tmp_path):
    """Also of a fleet with a long name."""
    long = replace(without_stack(REQUEST), fleet="f" * 300)
    for name in (stack_of(long), record_of(long, ACCOUNT, "ami-1").shared):
        StackSettings(name, tmp_path, "file://x", tmp_path)


def test_hosts_share_what_was_declared_alike():
    """Another account, VPC or placement has shared parts of its own; another type or range of addresses has not."""

    def name(**place):
        return record_of(replace(REQUEST, endpoint={**PLACE, **place}), ACCOUNT, "ami-1").shared

    assert name() == name(instance_type="p5.48xlarge") == name(stack="gpus-5")
    assert name() == name(ssh_from=["198.51.100.1/32"])
    others = [name(account="2" * 12), name(vpc="vpc-1"), name(placement="cluster")]
    assert len({name(), *others}) == 4
    assert shared_of(replace(REQUEST, endpoint={**PLACE, "placement": "cluster"}), "k").is_cluster


def test_records_outlive_the_process(tmp_path):
    """What was written is read again, and is gone with its stack."""
    record = record_of(REQUEST, ACCOUNT, "ami-1").with_created({REQUEST.uid: "i-1"})
    records = FileRecords(tmp_path)
    assert read_record(records, record.stack) is None
    write_record(records, record)
    assert read_record(FileRecords(tmp_path), record.stack) == record
    assert list(read_records(records)) == [record]
    assert read_shared(records, record.stack) is None
    shared = SharedRecord(ACCOUNT, shared_of(REQUEST, "key"), SharedParts("sg-1", "key"))
    write_shared(records, record.shared, shared)
    assert read_shared(records, record.shared) == shared
    records.remove(record.stack)
    assert list(read_records(records)) == []
    assert record.without(frozenset({REQUEST.uid})).hosts == {}

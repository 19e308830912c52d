"""Which stack an instance is adopted into."""

from __future__ import annotations

from fleetform.providers.contract.observed import InstanceSeen
from fleetform.providers.pulumi.aws.adoption import adopted_batches, request_for
from fleetform.providers.pulumi.aws.batch_record import write_record
from fleetform.providers.pulumi.aws.place import record_of
from fleetform.providers.pulumi.engine.file_records import FileRecords
from unit.providers.test_pulumi_aws_place import ACCOUNT, PLACE


def seen(uid: str, **place: object) -> InstanceSeen:
    return InstanceSeen(
        uid * 32, f"gpus-{uid}", "gpus", "e1", "", 0, alive=True, provider="aws",
        endpoint={**PLACE, "id": f"i-{uid}", **place},
    )  # fmt: skip


def batch_of(request):
    return record_of(request, ACCOUNT, request.endpoint["image"])


def adopted(tmp_path, *instances: InstanceSeen):
    names, batches = adopted_batches(instances, FileRecords(tmp_path), batch_of)
    return {uid[0]: name for uid, name in names.items()}, {
        record.stack: dict(record.created) for _, record in batches
    }


def test_a_stack_without_a_record_gets_back_all_of_its_hosts(tmp_path):
    """By the stack that their tags name; one that differs from the first has a stack of its own."""
    names, batches = adopted(tmp_path, seen("a"), seen("b"), seen("c", instance_type="p5.48xlarge"))
    assert names == {"a": "gpus-1234", "b": "gpus-1234", "c": "gpus-cccccccccccc"}
    assert batches == {
        "gpus-1234": {"a" * 32: "i-a", "b" * 32: "i-b"},
        "gpus-cccccccccccc": {"c" * 32: "i-c"},
    }


def test_a_recorded_host_keeps_its_stack(tmp_path):
    """And one that no change of the stack has created does not join it, also if it has the uid of another one."""
    one, double = seen("a"), seen("a", id="i-9")
    record = batch_of(request_for(one)).with_created({one.uid: "i-a"})
    write_record(FileRecords(tmp_path), record)
    assert adopted(tmp_path, one) == ({"a": "gpus-1234"}, {})
    names, batches = adopted(tmp_path, seen("b"))
    assert names == {"b": "gpus-bbbbbbbbbbbb"}
    assert batches == {"gpus-bbbbbbbbbbbb": {"b" * 32: "i-b"}}
    assert adopted(tmp_path, double)[0] == {"a": "gpus-aaaaaaaaaaaa"}

"""The preview of hosts that need several batches."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace

from fleetform.providers.contract.hosts import PreviewedChange
from fleetform.providers.pulumi.aws import preview
from fleetform.providers.pulumi.aws.batch_record import (
    BatchRecord,
    SharedRecord,
    write_record,
    write_shared,
)
from fleetform.providers.pulumi.aws.program import (
    AwsAccount,
    HostTemplate,
    SharedParts,
    SharedRequest,
)

ACCOUNT = AwsAccount("us-east-1", "123456789012", "e1")
SHARED = SharedRequest("u", "gpus", "o", ("203.0.113.7/32",), "key")


def test_each_hundred_hosts_are_a_batch(monkeypatch, tmp_path):
    """All hosts are there once, what they share is there once, and the account is asked for the sum."""
    asked = []

    async def previewed(_folder, program, _slots):
        return tuple(PreviewedChange("create", one.type, one.name) for one in program.resources)

    monkeypatch.setattr(preview, "preview_program", previewed)
    monkeypatch.setattr(
        preview, "require_ready", lambda record, *_: asked.append(len(record.hosts))
    )
    hosts = {f"gpus-{number}": f"gpus-{number}" for number in range(201)}
    template = HostTemplate("g5.xlarge", "ami-1", 100)
    record = BatchRecord("s", "gpus", ACCOUNT, template, "shared", hosts)
    records = SimpleNamespace(read=lambda *_: None)
    found = asyncio.run(preview.preview_batch(tmp_path, records, record, SHARED, None))
    names = [one.name for one in found]
    assert sum(one.type == "aws:ec2/instance:Instance" for one in found) == 201
    assert [one.type for one in found].count("aws:ec2/securityGroup:SecurityGroup") == 1
    assert len(names) == len({*names})
    assert asked == [201]


class Records:
    """Records of stacks in memory."""

    def __init__(self):
        self._texts = defaultdict(dict)

    def read(self, stack, kind):
        return self._texts[kind].get(stack)

    def read_all(self, kind):
        return self._texts[kind]

    def write(self, stack, kind, text):
        self._texts[kind][stack] = text


def released(records, *uids, kept=()):
    changes = list(preview.previewed_release(records, frozenset(uids), frozenset(kept)))
    assert {one.action for one in changes} == ({"delete"} if changes else set())
    return [one.name for one in changes]


def test_a_release_names_what_is_deleted():
    """A host with its address; with the last one what the hosts share, unless others need it."""
    records = Records()
    template = HostTemplate("p4d.24xlarge", "ami-1", 100, network_cards=4, efa=True)
    hosts, created = {"u0": "gpus-0", "u1": "gpus-1"}, {"u0": "i-0", "u1": "i-1"}
    batch = BatchRecord("s", "gpus", ACCOUNT, template, "gpus-shared", hosts, created)
    write_record(records, batch)
    parts = SharedParts("sg-1", "key-1")
    write_shared(records, "gpus-shared", SharedRecord(ACCOUNT, SHARED, parts))
    assert released(records, "u1") == ["gpus-1", "gpus-1-address"]
    both = ["interfaces", "gpus-0", "gpus-0-address", "gpus-1", "gpus-1-address"]
    assert released(records, "u0", "u1", kept=["gpus-shared"]) == both
    assert released(records, "u0", "u1") == [*both, "security-group", "key"]
    assert released(records, "u2") == []


def test_a_host_that_was_never_created_is_not_deleted():
    """It is in the record of its batch, and the cloud has none."""
    records = Records()
    template = HostTemplate("g5.xlarge", "ami-1", 100)
    write_record(records, BatchRecord("s", "gpus", ACCOUNT, template, "x", {"u0": "gpus-0"}))
    assert released(records, "u0") == []

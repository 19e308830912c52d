"""The preview of hosts that need several batches."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from fleetform.providers.contract.hosts import PreviewedChange
from fleetform.providers.pulumi.aws import preview
from fleetform.providers.pulumi.aws.batch_record import BatchRecord
from fleetform.providers.pulumi.aws.program import AwsAccount, HostTemplate, SharedRequest

ACCOUNT = AwsAccount("us-east-1", "123456789012", "e1")
SHARED = SharedRequest("u", "gpus", "o", ("203.0.113.7/32",), "key")


def test_each_hundred_hosts_are_a_batch(monkeypatch, tmp_path):
    """All hosts are there once, what they share is there once, and the account is asked for the sum."""
    asked = []

    async def previewed(_folder, program, _slots, check):
        check()
        return tuple(PreviewedChange("create", one.type, one.name) for one in program.resources)

    monkeypatch.setattr(preview, "preview_program", previewed)
    monkeypatch.setattr(preview, "require_ready", lambda record, _: asked.append(len(record.hosts)))
    hosts = {f"gpus-{number}": f"gpus-{number}" for number in range(201)}
    template = HostTemplate("g5.xlarge", "ami-1", 100)
    record = BatchRecord("s", "gpus", ACCOUNT, template, "shared", hosts)
    records = SimpleNamespace(read=lambda *_: None)
    found = asyncio.run(preview.preview_batch(tmp_path, records, record, SHARED, None))
    names = [one.name for one in found]
    assert sum(one.type == "aws:ec2/instance:Instance" for one in found) == 201
    assert [one.type for one in found].count("aws:ec2/securityGroup:SecurityGroup") == 1
    assert len(names) == len({*names})
    assert asked == [201] * 3

"""
`fleetform` with a cloud that creates each batch at once, by one call and without Pulumi: thousands of batches in minutes.

Records, ledger and instances are as after real creations; the stacks have no state.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fleetform.app import background_start
from fleetform.cli.entry import main
from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import (
    CreatedHost,
    InstanceRequest,
    PreviewedChange,
    Report,
)
from fleetform.providers.pulumi.aws import hosts
from fleetform.providers.pulumi.aws.batch_record import SharedRecord, write_record, write_shared
from fleetform.providers.pulumi.aws.clients import service_client
from fleetform.providers.pulumi.aws.place import record_of, shared_of
from fleetform.providers.pulumi.aws.program import SharedParts, batch_program


class QuickHosts(hosts.AwsHosts):
    """Has one client, and calls it for one batch after the other."""

    _client = None

    def ssh_endpoint(self, request: InstanceRequest) -> dict[str, Any] | None:
        """Refuse: there is nothing to connect to, thousands of times."""
        raise TemporaryError(f"host {request.name}: no SSH server answers")

    async def preview(
        self, requests: Sequence[InstanceRequest], replaced: int = 0, *, emptied: bool = False
    ) -> Sequence[PreviewedChange]:
        return ()

    async def _create(
        self, requests: Sequence[InstanceRequest], report: Report
    ) -> Mapping[str, CreatedHost]:
        first = requests[0]
        account = self._account(first)
        self._client = self._client or service_client(account, "ec2")
        record = record_of(first, account, first.endpoint["image"])
        record = record.with_hosts({one.uid: one.name for one in requests})
        parts = SharedParts("sg-1", "key")
        created = {}
        for one in batch_program(account, record.batch({}), parts).resources[1:]:
            tags = [{"Key": key, "Value": text} for key, text in one.properties["tags"].items()]
            (instance,) = self._client.run_instances(
                ImageId=record.template.image, InstanceType=record.template.instance_type,
                MinCount=1, MaxCount=1, ClientToken=one.name,
                TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            )["Instances"]  # fmt: skip
            key = self._first_key(one.name).public
            created[one.name] = CreatedHost(instance["InstanceId"], "127.64.0.1", key)
        ids = {uid: host.id for uid, host in created.items()}
        write_record(self._records, record.with_created(ids))
        shared = shared_of(first, self._keys.public_key())
        write_shared(self._records, record.shared, SharedRecord(account, shared, parts))
        return created


if __name__ == "__main__":
    hosts.AwsHosts = QuickHosts
    # A background controller would ask thousands of hosts over SSH, again and again.
    background_start.has_work = lambda _: False
    sys.exit(main())

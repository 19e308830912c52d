"""
What a stack of hosts contains, written down before the cloud is asked for anything.

The record lasts as long as the stack. The next program of the stack is made from it: whichever process was killed, its successor knows which hosts were asked for under which uids.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.pulumi.aws.program import (
    AwsAccount,
    Batch,
    HostTemplate,
    NewHost,
    SharedParts,
    SharedRequest,
)
from fleetform.providers.pulumi.recovery.existence import LISTED

__all__ = [
    "SHARED",
    "BatchRecord",
    "SharedRecord",
    "keep_host_key",
    "read_all_shared",
    "read_host_keys",
    "read_record",
    "read_records",
    "read_shared",
    "read_unanswered",
    "write_record",
    "write_shared",
]

BATCH = "batch"
SHARED = "shared"
"""The kinds of both records."""

_HOST_KEYS = "host_keys"

_LISTED_MS = LISTED // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """
    Hosts of one batch.

    `hosts` are names by uid, of those that are wanted. `created` are ids of the cloud by uid: a host
    that was created once is never created again under its uid. `asked` are uids that the cloud may have been
    asked for without an answer: a change was cut off, or its reply was lost. `missing_since_ms` is since when nothing can
    have them created any more, Unix milliseconds; None: that is not known yet. `shared` is the name of the
    stack with the parts that its hosts share.
    """

    stack: str
    fleet: str
    account: AwsAccount
    template: HostTemplate
    shared: str
    hosts: Mapping[str, str] = field(default_factory=dict)
    created: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    missing_since_ms: int | None = None

    def with_hosts(self, hosts: Mapping[str, str]) -> BatchRecord:
        return replace(self, hosts={**self.hosts, **hosts})

    def without(self, uids: frozenset[str]) -> BatchRecord:
        return replace(self, hosts={uid: self.hosts[uid] for uid in self.hosts if uid not in uids})

    def with_created(self, ids: Mapping[str, str]) -> BatchRecord:
        return replace(self, created={**self.created, **ids})

    def with_asked(self, uids: Collection[str]) -> BatchRecord:
        """`uids` are those that the cloud may have been asked for from now on."""
        return replace(self, asked=tuple(sorted(uids)), missing_since_ms=None)

    def settled(self, there: Mapping[str, str], missing: Collection[str]) -> BatchRecord:
        """Return the record when the ids of `there` are known, by uid, and `missing` were not created."""
        known = self.with_created({uid: there[uid] for uid in there if uid in self.hosts})
        left = tuple(uid for uid in self.asked if uid not in known.created and uid not in missing)
        return replace(known, asked=left, missing_since_ms=self.missing_since_ms if left else None)

    def without_refused(self, uids: Collection[str]) -> BatchRecord:
        """Return the record without those of `uids` that the cloud did not create: no host of that uid can exist."""
        gone = [uid for uid in uids if uid not in self.created and uid not in self.asked]
        return self.without(frozenset(gone))

    def batch(self, user_data: Mapping[str, str]) -> Batch:
        """
        Return the batch for a program.

        `user_data` has that of new hosts only: EC2 reads it at the first boot, and it is not kept.
        """
        hosts = tuple(
            NewHost(uid, name, self.stack, user_data.get(uid, ""))
            for uid, name in self.hosts.items()
        )
        return Batch(self.stack, self.fleet, self.template, hosts)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BatchRecord:
        account, said = AwsAccount(**value["account"]), value["template"]
        template = HostTemplate(**{**said, "groups": tuple(said.get("groups", ()))})
        asked = tuple(value["asked"])
        return cls(**{**value, "account": account, "template": template, "asked": asked})


@dataclass(frozen=True, slots=True)
class SharedRecord:
    """
    The shared parts of hosts as they were asked for.

    `parts` are their ids, None until all were created. `is_changing`: a change of them was begun, and its end is not
    recorded.
    """

    account: AwsAccount
    request: SharedRequest
    parts: SharedParts | None = None
    is_changing: bool = False

    def is_open_to(self, ssh_from: tuple[str, ...]) -> bool:
        """Tell whether SSH is accepted from these addresses and no others, as far as it is recorded."""
        return not self.is_changing and {*self.request.ssh_from} == {*ssh_from}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SharedRecord:
        request, parts = value["request"], value["parts"]
        return cls(
            AwsAccount(**value["account"]),
            SharedRequest(**{**request, "ssh_from": tuple(request["ssh_from"])}),
            None if parts is None else SharedParts(**parts),
            value.get("is_changing", False),
        )


def read_record(records: StackRecords, stack: str) -> BatchRecord | None:
    """Return the record of a stack; None: nothing was ever asked for."""
    text = records.read(stack, BATCH)
    return None if text is None else BatchRecord.from_json(json.loads(text))


def write_record(records: StackRecords, record: BatchRecord) -> None:
    """Replace the record of a stack in one step."""
    records.write(record.stack, BATCH, _text(asdict(record)))


def read_records(records: StackRecords) -> Iterator[BatchRecord]:
    """Read the records of all stacks of hosts."""
    for text in records.read_all(BATCH).values():
        yield BatchRecord.from_json(json.loads(text))


def read_unanswered(records: StackRecords) -> dict[str, int | None]:
    """
    Return the hosts that the cloud was asked for, whose answer a ledger without their ids lacks, by uid.

    The value is until when the cloud is given time to list the instance, Unix milliseconds; None: that time has not begun.
    """
    found: dict[str, int | None] = {}
    for record in read_records(records):
        since_ms = record.missing_since_ms
        until_ms = None if since_ms is None else since_ms + _LISTED_MS
        found |= {**dict.fromkeys(record.created), **dict.fromkeys(record.asked, until_ms)}
    return found


def read_host_keys(records: StackRecords, stack: str) -> dict[str, str]:
    """Return the keys that hosts of a stack may have, one a line, by uid."""
    keys: dict[str, str] = json.loads(records.read(stack, _HOST_KEYS) or "{}")
    return keys


def keep_host_key(records: StackRecords, stack: str, uid: str, keys: str) -> None:
    """Keep the keys that a host of a stack may have: a ledger of last night does not know them."""
    records.write(stack, _HOST_KEYS, _text({**read_host_keys(records, stack), uid: keys}))


def read_shared(records: StackRecords, stack: str) -> SharedRecord | None:
    """Return the record of a stack of shared parts; None: they were never asked for."""
    text = records.read(stack, SHARED)
    return None if text is None else SharedRecord.from_json(json.loads(text))


def read_all_shared(records: StackRecords) -> dict[str, SharedRecord]:
    """Return the records of all stacks of shared parts, by stack."""
    return {
        stack: SharedRecord.from_json(json.loads(text))
        for stack, text in records.read_all(SHARED).items()
    }


def write_shared(records: StackRecords, stack: str, record: SharedRecord) -> None:
    """Replace the record in one step; with the ids of the parts a new batch starts no runner for them."""
    records.write(stack, SHARED, _text(asdict(record)))


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)

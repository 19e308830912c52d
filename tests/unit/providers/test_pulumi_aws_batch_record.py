"""What is known of the hosts of a batch after each answer of the cloud, and after none."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from fleetform.providers.pulumi.aws.batch_record import (
    BatchRecord,
    read_unanswered,
    write_record,
)
from fleetform.providers.pulumi.aws.program import AwsAccount, HostTemplate
from fleetform.providers.pulumi.engine.file_records import FileRecords

ACCOUNT = AwsAccount("us-east-1", "123456789012", "e" * 32)
RECORD = BatchRecord(
    "gpus-1", "gpus", ACCOUNT, HostTemplate("g5.xlarge", "ami-1", 100), "gpus-shared",
    hosts={"a": "gpus-0", "b": "gpus-1", "c": "gpus-2"},
)  # fmt: skip


def test_what_the_cloud_refused_is_not_in_the_record():
    """A host that exists stays, and one that may exist; of one that was refused there is nothing to release."""
    record = replace(RECORD.with_created({"a": "i-1"}), asked=("b",))
    assert set(record.without_refused(("a", "b", "c")).hosts) == {"a", "b"}


def test_an_answer_that_is_known_is_not_waited_for():
    """One that is listed was created, one that is missing for long enough was not, and the rest is still open."""
    record = replace(RECORD, asked=("a", "b", "c"), missing_since_ms=7)
    settled = record.settled({"a": "i-1"}, {"b"})
    assert (settled.created, settled.asked, settled.missing_since_ms) == ({"a": "i-1"}, ("c",), 7)
    settled = settled.settled({}, {"c"})
    assert (settled.asked, settled.missing_since_ms) == ((), None)


def test_a_new_call_begins_a_new_wait():
    """What is asked for now may be listed ten minutes after this call, whatever came before."""
    record = replace(RECORD, asked=("a",), missing_since_ms=7).with_asked({"b", "a"})
    assert (record.asked, record.missing_since_ms) == (("a", "b"), None)


def test_a_record_of_an_earlier_release_is_read():
    """It does not say since when an answer is missing."""
    value = asdict(replace(RECORD, asked=("a",)))
    del value["missing_since_ms"]
    assert BatchRecord.from_json(json.loads(json.dumps(value))) == replace(RECORD, asked=("a",))


def test_what_was_asked_for_is_unanswered_until_the_cloud_must_have_listed_it(tmp_path):
    """Ten minutes after nothing can create it any more; what was created has an answer, which a ledger may lack."""
    records = FileRecords(tmp_path)
    write_record(records, replace(RECORD.with_created({"a": "i-1"}), asked=("b",)))
    assert read_unanswered(records) == {"a": None, "b": None}
    write_record(records, replace(RECORD, asked=("b",), missing_since_ms=1_000))
    assert read_unanswered(records) == {"b": 601_000}

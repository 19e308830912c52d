"""Whom an agent obeys."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fleetform.agents.host import admission
from fleetform.agents.host.memory import Entry, Memory
from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import JobState
from unit.agents_host.jobs import HELLO


def known() -> Memory:
    return Memory(owner="environment", ledger_id="ledger", epoch=5, fence=7)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, None),
        ({"fence": 9}, None),
        ({"fence": 6}, "old_fence"),
        ({"epoch": 6, "fence": 1}, None),
        ({"epoch": 4}, "old_epoch"),
        ({"ledger_id": "other"}, "foreign_ledger"),
        ({"ledger_id": "other", "epoch": 4}, "foreign_ledger"),
        ({"ledger_id": "other", "epoch": 6}, None),
        ({"environment_uid": "other", "epoch": 9}, "foreign_owner"),
        ({"protocol_newest": 2}, None),
        ({"protocol_newest": 9}, None),
        ({"protocol": 0, "protocol_newest": 1}, None),
        ({"protocol": 3}, "protocol"),
        ({"protocol": 0}, "protocol"),
    ],
)
def test_objection(fields: dict[str, Any], code: str | None) -> None:
    """Protocol, owner, ledger, epoch and fence are checked in this order."""
    hello = dataclasses.replace(HELLO, **{"epoch": 5, "fence": 7, **fields})
    rejected = admission.objection(hello, known())
    assert (rejected.code if rejected else None) == code


@pytest.mark.parametrize(
    ("oldest", "newest", "agreed"),
    [(1, 0, 1), (1, 1, 1), (1, 2, 2), (2, 2, 2), (1, 9, 2), (3, 9, None), (0, 0, None)],
)
def test_agreed_protocol(oldest: int, newest: int, agreed: int | None) -> None:
    """The highest version that both speak; a controller of version 1 names no newest."""
    hello = dataclasses.replace(HELLO, protocol=oldest, protocol_newest=newest)
    assert admission.agreed_protocol(hello) == agreed


def test_first_hello_makes_the_owner() -> None:
    """An agent that belongs to nobody belongs to the first who says hello."""
    memory = Memory()
    assert admission.objection(HELLO, memory) is None
    admission.adopt(HELLO, memory, 7)
    assert (memory.owner, memory.ledger_id, memory.epoch) == ("environment", "ledger", 1)


def test_another_environment_is_told_whose_the_host_is() -> None:
    """By its name and its uid, and since when: somebody has to be asked."""
    memory = Memory()
    admission.adopt(dataclasses.replace(HELLO, environment_name="lab"), memory, 1_700_000_000_000)
    admission.adopt(dataclasses.replace(HELLO, epoch=2), memory, 1_800_000_000_000)
    refusal = admission.objection(dataclasses.replace(HELLO, environment_uid="other"), memory)
    assert refusal is not None
    assert "lab (environm…) since 2023-11-14T22:13:20Z" in refusal.message


def test_fences_count_within_an_epoch() -> None:
    """A new epoch begins its fences anew, so a rebuilt ledger is not shut out by an old number."""
    memory = known()
    admission.adopt(dataclasses.replace(HELLO, epoch=6, fence=1), memory, 7)
    assert (memory.epoch, memory.fence) == (6, 1)


def test_snapshot_leaves_old_tombstones_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot has every live record, and of tombstones the newest that fit a frame."""
    monkeypatch.setattr(admission, "TOMBSTONES_IN_SNAPSHOT_MAX", 2)

    def entry(n: int, *, tombstone: bool) -> Entry:
        record = JobRecord(
            JobKey("r", n, 0), f"job-{n}", 1, "", JobState.FINISHED, tombstone=tombstone
        )
        return Entry(record, "boot", buried_at_ms=n)

    entries = [entry(n, tombstone=n < 5) for n in range(7)]
    records = admission.records(entries)
    assert [record.job_uid for record in records] == ["job-5", "job-6", "job-4", "job-3"]

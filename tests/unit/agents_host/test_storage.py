"""The agent's memory on disk, and what is left of it after a crash."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.agents.host import memory, storage
from fleetform.agents.host.memory import Entry, Memory, StopOrder
from fleetform.agents.host.storage import FileStore
from fleetform.agents.protocol.messages import FileEntry, JobKey, JobRecord, Mount
from fleetform.agents.protocol.states import Cause, JobState
from unit.agents_host.jobs import job


def stored(path: Path, *entries: bytes) -> FileStore:
    store = FileStore(str(path))
    for entry in entries:
        store.append(entry, sync=False)
    store.commit()
    return store


def loaded(path: Path) -> list[bytes]:
    """What the next one finds."""
    store = FileStore(str(path))
    store.close()
    return store.load()


def test_round_trip(tmp_path: Path) -> None:
    """What was committed is there for the next one, in order; what was not is not."""
    store = stored(tmp_path / "journal", b"one", b"two")
    store.append(b"three", sync=True)
    store.close()
    assert loaded(tmp_path / "journal") == [b"one", b"two"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(0, 60), junk=st.binary(max_size=10))
def test_torn_end(tmp_path: Path, cut: int, junk: bytes) -> None:
    """A torn end is dropped, what stands before it is kept, and writing goes on behind that."""
    path = tmp_path / "journal"
    path.unlink(missing_ok=True)
    stored(path, b"first", b"second", b"third").close()
    whole = path.read_bytes()
    path.write_bytes(whole[: max(len(whole) - cut, 0)] + junk)
    store = FileStore(str(path))
    kept = store.load()
    assert kept == [b"first", b"second", b"third"][: len(kept)]
    store.append(b"new", sync=False)
    store.commit()
    store.close()
    assert loaded(path) == [*kept, b"new"]


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is written by the next commit, after no half of itself."""
    path = tmp_path / "journal"
    store = stored(path, b"one")
    real = storage.os.write

    def half(descriptor: int, data: Any) -> int:
        if len(data) < 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[: len(data) // 2])

    store.append(b"a longer entry than the others", sync=False)
    monkeypatch.setattr(storage.os, "write", half)
    with pytest.raises(OSError, match="No space"):
        store.commit()
    monkeypatch.setattr(storage.os, "write", real)
    store.append(b"three", sync=False)
    store.commit()
    store.close()
    again = FileStore(str(path))
    assert again.load() == [b"one", b"a longer entry than the others", b"three"]
    assert again.torn == 0
    again.close()


def test_rewrite(tmp_path: Path) -> None:
    """A rewritten store holds what it was given, and goes on from there."""
    store = stored(tmp_path / "journal", *[b"old"] * 100)
    store.rewrite([b"kept"])
    store.append(b"more", sync=False)
    store.commit()
    store.close()
    assert loaded(tmp_path / "journal") == [b"kept", b"more"]


def test_memory_round_trip() -> None:
    """Every field of a memory survives being written down, entry by entry and as a snapshot."""
    spec = job(
        files=(FileEntry("a", "0" * 64, 1, 0o755),),
        mounts=(Mount("m", "/s", "/t", read_only=True),),
        gpus=("GPU-1",),
        env={"A": "b"},
        memory_bytes=5,
    )
    record = JobRecord(spec.key, spec.job_uid, 2, "d", JobState.PREPARING, message="ü")
    ended = JobRecord(
        JobKey("b", 1, 0), "job-b", 3, "e", JobState.FINISHED, Cause.EXITED, 0, log_bytes=7
    )
    known = Memory("install", "machine", "owner", "ledger", 4, 5)
    for entry in (
        Entry(record, "boot", ("GPU-1",), True, StopOrder(Cause.STOPPED, None)),
        Entry(ended, "boot", buried_at_ms=9),
    ):
        known.entries[entry.record.key] = entry
    lines = list(memory.snapshot(known))
    assert memory.restore(lines) == known
    removal = memory.of_removal([JobKey("b", 1, 0)])
    assert set(memory.restore([*lines, removal.entry]).entries) == {spec.key}


def test_foreign_entries_are_refused() -> None:
    """An entry of a kind nobody knows is not passed over: it might be a tombstone."""
    with pytest.raises(ValueError, match="unknown kind"):
        memory.restore([b'{"kind":"other"}'])

"""Contents that a host keeps, and which of them go."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from fleetform.agents.host.blobs import BlobStore

HOUR = 3600.0
NOW = 1_000_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def put(store: BlobStore, content: bytes, needed_at: float) -> str:
    digest = hashlib.sha256(content).hexdigest()
    store.write(digest, 0, content)
    store.finish(digest)()
    os.utime(store.path(digest), (needed_at, needed_at))
    return digest


def test_the_least_recently_needed_go_first(store: BlobStore) -> None:
    """As many as exceed the budget, and no more."""
    old = put(store, b"a" * 100, NOW - 5 * HOUR)
    older = put(store, b"b" * 100, NOW - 6 * HOUR)
    recent = put(store, b"c" * 100, NOW - 4 * HOUR)
    store.evict(NOW, budget=300)
    assert store.missing((old, older, recent)) == []
    for digest, hours in ((old, 5), (older, 6), (recent, 4)):
        os.utime(store.path(digest), (NOW - hours * HOUR,) * 2)
    store.evict(NOW, budget=150)
    assert [store.has(one) for one in (recent, old, older)] == [True, False, False]


def test_what_a_job_is_about_to_need_stays(store: BlobStore) -> None:
    """A controller that is told that it is here does not send it again."""
    needed = put(store, b"a" * 100, NOW - 5 * HOUR)
    assert store.missing((needed,)) == []
    store.evict(Path(store.path(needed)).stat().st_mtime, budget=0)
    assert store.has(needed)


def test_the_budget_is_a_part_of_the_disk(store: BlobStore) -> None:
    """An empty store and a small one lose nothing."""
    store.evict(NOW)
    kept = put(store, b"a", NOW - 5 * HOUR)
    store.evict(NOW)
    assert store.has(kept)

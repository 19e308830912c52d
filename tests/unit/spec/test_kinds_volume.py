"""Fields of a volume: directories of a fleet, disks of a backend, and what is registered."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from unit.spec.trees import codes, good, load

DOCUMENT = "type: volume\nname: data\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("", "missing-field", "Neither `fleet` nor `backend` is set."),
        ("size: 500GB", "missing-field", "Add `backend:`, which `size` goes with"),
        ("fleet: local", "missing-field", "`path` is missing"),
        ("path: /data", "missing-field", "Neither `fleet` nor `backend` is set."),
        (
            "fleet: local\npath: /data\nbackend: aws",
            "contradiction",
            "either a directory on the hosts of a fleet or a disk",
        ),
        (
            "fleet: local\npath: /data\nsize: 1GB",
            "contradiction",
            "`size` is for disks of a backend",
        ),
        (
            "fleet: local\npath: /data\nregion: eu-west-1",
            "contradiction",
            "a directory of the fleet `local`",
        ),
        ("fleet: local\npath: ../data", "bad-path", "contains `..`"),
        ("fleet: local\npath: a/../data", "bad-path", "contains `..`"),
        ("backend: aws\nsize: 1GB", "missing-field", "`region` is missing"),
        (
            "backend: aws\nregion: a\nsize: 1GB\npath: /data",
            "contradiction",
            "`path` is for directories on hosts, not for disks of a backend.",
        ),
        ("backend: aws\nregion: a\nsize: 1GB..2GB", "bad-value", "1GB..2GB"),
        ("backend: aws\nregion: a\nsize: 0", "bad-value", "the least is 1"),
        ("backend: aws\nregion: a\nvolume_id: v\nsize: 1GB", "contradiction", "exists already"),
        (
            "backend: aws\nregion: a\nvolume_id: v\ndeletion_policy: delete",
            "contradiction",
            "never deleted",
        ),
        (
            "backend: aws\nregion: a\nvolume_id: v\nauto_cleanup_duration: 1d",
            "contradiction",
            "never deleted",
        ),
        (
            "backend: aws\nregion: a\nsize: 1GB\nclaim_name: c",
            "contradiction",
            "claims in Kubernetes",
        ),
        (
            "backend: kubernetes\nclaim_name: c\naccess_modes: [ReadWriteOne]",
            "bad-value",
            "Did you mean `ReadWriteOnce`?",
        ),
        ("backend: AWS\nregion: a\nsize: 1GB", "bad-name", "lower-case"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


@pytest.mark.parametrize(
    ("fields", "codes_told", "is_held"),
    [
        ("fleet: local\npath: /data", [], False),
        ("backend: aws\nregion: eu-west-1\nsize: 500GB", ["not-supported"], True),
        ("backend: aws\nregion: eu-west-1\nvolume_id: vol-1", ["not-supported"], True),
        ("backend: kubernetes\nclaim_name: c", ["not-supported"], True),
        ("backend: kubernetes\nsize: 1GB\nread_only: true", ["not-supported"], True),
        ("backend: aws\nregion: a", ["missing-field", "not-supported"], True),
    ],
)
def test_where_it_lies(tmp_path, fields, codes_told, is_held):
    """A directory is made; a disk has one note at `backend` and is held."""
    fleet = "---\ntype: fleet\nname: local\nlocal: true\n"
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n{fleet}")
    assert codes(loaded) == codes_told
    assert not loaded.errors
    assert loaded.desired is not None
    assert bool(loaded.desired.beyond) == is_held


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("data/", "data"),
        ("./data", "data"),
        ("a//b/./c", "a/b/c"),
        ("//data", "/data"),
        ("./", "."),
    ],
)
def test_a_path_has_one_spelling(tmp_path, written, path):
    """Whoever compares two paths later compares texts; `a/../data` is refused above."""
    text = f"{DOCUMENT}fleet: local\npath: {written}\n---\ntype: fleet\nname: local\nlocal: true\n"
    resources = good(tmp_path, text).resources
    assert resources[ResourceKey("volume", "data")].document["path"] == path


def test_amounts_are_whole(tmp_path):
    """Sizes are bytes and durations seconds, and `off` is kept apart from nothing."""
    text = f"{DOCUMENT}backend: gcp\nregion: a\nsize: 1TB\nauto_cleanup_duration: off\n"
    desired = good(tmp_path, text)
    (held,) = desired.beyond.values()
    assert held.declared.document == {
        "backend": "gcp",
        "region": "a",
        "size": 2**40,
        "auto_cleanup_duration": -1,
    }

"""Fields of a volume: directories of a fleet, disks of a backend, and what is registered."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from unit.spec.trees import codes, good, load

DOCUMENT = "type: volume\nname: data\n"


EFS = 'backend: aws\nregion: us-east-1\naws: {account: "123456789012", file_system: efs}'


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
        ("fleet: local\npath: /data\nhosts: [a, a]", "said-twice", "listed twice"),
        ("fleet: local\npath: /data\nhosts: [a, -b]", "bad-value", "not a host's name"),
        ("fleet: local\npath: /data\nhosts: []", "bad-value", "The list is empty"),
        (
            "backend: aws\nregion: a\nsize: 1GB\nhosts: [a]",
            "contradiction",
            "`hosts` is for directories on hosts",
        ),
        ("fleet: local\npath: ../data", "bad-path", "contains `..`"),
        ("fleet: local\npath: a/../data", "bad-path", "contains `..`"),
        ("backend: aws\nsize: 1GB", "missing-field", "`region` is missing"),
        (
            'backend: aws\nregion: us-east-1\navailability_zone: us-west-1a\nsize: 1GB\naws: {account: "123456789012"}',
            "contradiction",
            "`us-west-1a` is not a zone of `us-east-1`.",
        ),
        (
            'backend: aws\nregion: us-east-1\navailability_zone: us-east-1a\naws: {account: "123456789012"}',
            "missing-field",
            "Neither `size` nor `volume_id` is set.",
        ),
        (
            "backend: aws\nregion: a\nsize: 1GB\npath: /data",
            "contradiction",
            "`path` is for directories on hosts, not for disks of a backend.",
        ),
        ("backend: aws\nregion: a\nsize: 1GB..2GB", "bad-value", "1GB..2GB"),
        ("backend: aws\nregion: a\nsize: 0", "bad-value", "the least is 1"),
        (
            'backend: aws\nregion: a\nsize: 65TB\naws: {account: "123456789012"}',
            "bad-value",
            "`gp3` has 64TB at most",
        ),
        (
            'backend: aws\nregion: a\nsize: 1MB\naws: {account: "123456789012"}',
            "bad-value",
            "`gp3` has 1GB at least",
        ),
        (
            'backend: aws\nregion: us-east-1\navailability_zone: us-east-1\nsize: 1GB\naws: {account: "123456789012"}',
            "contradiction",
            "a region, not a zone",
        ),
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
        (f"{EFS}\nvolume_id: vol-0f1e2d3c", "contradiction", "does not have its id"),
        (EFS, "contradiction", "does not have its id"),
        (
            f"{EFS}\nvolume_id: fs-0f1e2d3c\navailability_zone: ab",
            "contradiction",
            "mounted from every zone",
        ),
        (
            f"{EFS}\nvolume_id: fs-0f1e2d3c\ndeletion_policy: snapshot",
            "contradiction",
            "is never deleted",
        ),
        (
            'backend: aws\nregion: a\nvolume_id: fs-0f1e2d3c\naws: {account: "123456789012"}',
            "contradiction",
            "the id of a shared file system",
        ),
        (
            'backend: aws\nregion: a\nvolume_id: disk7\naws: {account: "123456789012"}',
            "bad-value",
            "`disk7` is not the id of a disk on AWS. Write the id that AWS shows, such as `vol-",
        ),
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
        (f"{EFS}\nvolume_id: fs-0f1e2d3c", [], False),
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


GPUS = "type: fleet\nname: gpus\nssh_config:\n  hosts: ['gpu[1-3]', {hostname: login, port: 2201}]\n---\n"
ON_GPUS = f"{DOCUMENT}fleet: gpus\npath: /data\n"


def test_hosts_are_written_out(tmp_path) -> None:
    """Ranges stand for their hosts, and the order of hosts means nothing."""
    loaded = load(tmp_path, f"{GPUS}{ON_GPUS}hosts: ['gpu[2-3]', 'login:2201', gpu1]\n")
    assert not loaded.errors
    volume = loaded.desired.resources[ResourceKey("volume", "data")]
    assert volume.document["hosts"] == ["gpu1", "gpu2", "gpu3", "login:2201"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{GPUS}{ON_GPUS}hosts: [gpu1, gpu7]\n", "has no host `gpu7`"),
        (f"{GPUS}{ON_GPUS}hosts: [login]\n", "has no host `login`"),
        (
            "type: fleet\nname: gpus\nnodes: 1\nlocal: {}\n---\n" + ON_GPUS + "hosts: [gpu1]\n",
            "has no `ssh_config`",
        ),
    ],
)
def test_hosts_are_those_of_the_fleet(tmp_path, text: str, words: str) -> None:
    """A name that the fleet does not have is an error at the volume."""
    findings = load(tmp_path, text).findings
    assert any(words in one.detail for one in findings), findings


RUN = "type: task\nname: train\ncommands: [echo]\n"


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        ("volumes: ['data:/etc']", True),
        ("volumes: ['data:/usr/']", True),
        ("volumes: ['data:/var/lib']", True),
        ("volumes: ['data:/proc/data']", True),
        ("volumes: ['data:/']", True),
        ("volumes: ['data:/']\nimage: ubuntu", True),
        ("volumes: ['data:/etc']\nimage: ubuntu", False),
        (
            "volumes: ['data:/usr/share/data', 'other:/home', 'third:etc', 'data:/etc/app', 'other:/root']",
            False,
        ),
    ],
)
def test_no_mount_hides_the_system(tmp_path, more: str, is_refused: bool) -> None:
    """The error is at the mount; in an image a job has system folders of its own, and only `/` is refused."""
    volumes = "".join(
        f"---\ntype: volume\nname: {name}\nfleet: local\npath: {name}\n"
        for name in ("data", "other", "third")
    )
    fleet = "---\ntype: fleet\nname: local\nlocal: true\n"
    loaded = load(tmp_path, f"{RUN}{more}\n{volumes}{fleet}")
    told = [(one.code, one.address) for one in loaded.errors]
    assert told == ([("bad-path", "task.train.volumes.0")] if is_refused else [])

"""The checks between documents look at no more than `tree.change_detection.FACTS` says."""

from __future__ import annotations

from pathlib import Path

from fleetform.spec import checks
from fleetform.spec.checks.volumes import check_paths
from fleetform.spec.references import Catalogue, Entry
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.change_detection import CLAIMS, FACTS
from unit.spec.trees import ENVIRONMENT, write

KINDS = Path(__file__).parents[3] / "data" / "kinds"
OTHERS = """\
type: fleet
name: local
local: {cpu: 2, memory: 4GB}
---
type: fleet
name: hosts
ssh_config:
  user: ada
  hosts: [{hostname: one, capacity: {cpu: 8}}, two]
---
type: volume
name: data
fleet: local
path: data
---
type: volume
name: disk
backend: aws
region: eu-west-1
volume_id: vol-1
---
type: queue
name: short
fleets: [local]
max_duration: 1h
nodes: 1..2
---
type: quota
name: few
queue: short
cpus: 1
---
type: task
name: first
commands: ["true"]
array: 1-3
fleets: [local]
---
type: task
name: second
commands: ["true"]
array: 1-4
nodes: 4
queue: short
fleets: [hosts]
max_duration: 2h
files: [./second.py]
volumes: ["data:/a", "disk:/a/b"]
resources: {cpu: 64, memory: 1TB, gpu: A100:8}
depends_on: [{run: first, each: true}]
"""


class Watched(dict):
    """A document that notes which of its fields are looked at."""

    def __init__(self, document, kind, seen):
        super().__init__(document)
        self.note = lambda name: seen.add((kind, name))

    def __getitem__(self, name):
        self.note(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.note(name)
        return super().get(name, default)

    def __contains__(self, name):
        self.note(name)
        return super().__contains__(name)

    def __iter__(self):
        self.note("all of them")
        return super().__iter__()

    def keys(self):
        self.note("all of them")
        return super().keys()

    def items(self):
        self.note("all of them")
        return super().items()

    def values(self):
        self.note("all of them")
        return super().values()


def watched(entry, seen):
    documents = [Watched(one, entry.key.kind, seen) for one in entry.documents]
    return Entry(
        entry.number, entry.key, entry.type, entry.place, documents, entry.elements, entry.references
    )  # fmt: skip


def looked_at(tmp_path, monkeypatch) -> tuple[set[tuple[str, str]], set[str]]:
    """Fields that checks have looked at, by kind, and the codes of what they told."""
    seen = set()
    check = checks.check

    def watching(catalogue):
        entries = [watched(entry, seen) for entry in catalogue.entries]
        by_number = {entry.number: entry for entry in catalogue.entries}
        again = Catalogue.of(
            entries, catalogue.broken, has_unread=catalogue.has_unread, nameless=catalogue.nameless
        )
        for entry, problem in check(again):
            yield by_number[entry.number], problem

    monkeypatch.setattr(checks, "check", watching)
    write(tmp_path, "environment.yaml", ENVIRONMENT)
    write(tmp_path, "second.py", "")
    write(tmp_path, "others.yaml", OTHERS)
    for file in KINDS.glob("*.yaml"):
        if file.name != "environment.yaml":
            write(tmp_path, file.name, file.read_text())
    loaded = load_tree(tmp_path)
    return seen, {one.code for one in loaded.findings}


def test_no_check_looks_further(tmp_path, monkeypatch):
    """What another field says changes nothing for other documents, so a load may pass over it."""
    seen, told = looked_at(tmp_path, monkeypatch)
    assert {"element-mismatch", "never-placed", "queue-refuses"} <= told
    for kind, fields in FACTS.items():
        found = {name for one, name in seen if one == kind}
        assert found <= fields, kind
        assert found == fields, f"facts that nobody looks at: {kind}"


def test_claims_are_compared_by_one_check(tmp_path, monkeypatch):
    """Whoever moves a volume has to ask for what lies there, and for nothing else."""
    others = tuple(check for check in checks.CHECKS if check is not check_paths)
    monkeypatch.setattr(checks, "CHECKS", others)
    seen, told = looked_at(tmp_path, monkeypatch)
    assert {"element-mismatch", "never-placed", "queue-refuses"} <= told
    for kind, fields in CLAIMS.items():
        assert fields <= FACTS[kind]
        assert not {(kind, name) for name in fields} & seen

"""Canonical documents of a tree, and the digests that tell one from another."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fleetform.spec.canonical import digest
from fleetform.spec.desired import ResourceKey
from fleetform.spec.fields import EXECUTION_FIELDS
from fleetform.spec.kinds import KINDS as TYPES
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from unit.spec.trees import good

KINDS = Path(__file__).parents[3] / "data" / "kinds"

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


def run(name: str) -> ResourceKey:
    return ResourceKey("run", name)


WORKSTATION = """\
type: fleet
name: workstation
description: The machine under the desk
tags: {team: vision, rack: 7}
protect: true
nodes: 1..2
local: {cpu: 32, memory: 256GB, disk: 2TB, gpu: A100:80GB:8}
sharing: blocks
blocks: 8
---
type: volume
name: checkpoints
description: What training leaves behind
tags: {team: vision}
protect: true
fleet: workstation
path: checkpoints/vision
deletion_policy: retain
---
type: task
name: train
description: Fine-tune at several rates
tags:
  team: vision
  cost-center: 42
protect: false
commands:
  - python train.py --lr ${{ matrix.lr }} --batch ${{ matrix.batch }}
  - echo "done, $${{ literally }}"
shell: bash
env:
  - OMP_NUM_THREADS=4
  - RUN=${{ run.name }}
working_dir: code
files:
  - ./conf/a.yaml:code/a.yaml
  - local_path: ./conf/b.yaml
    path: code/b.yaml
volumes:
  - checkpoints:/checkpoints
  - name: checkpoints
    path: previous
    read_only: true
resources:
  cpu: 2..4
  memory: 16GB..
  disk: 50GB
  shm_size: 8GB
  gpu:
    vendor: nvidia
    name: [A100, H100]
    memory: 40GB..
    count: 1..2
nodes: 2
matrix:
  lr: [0.1, 0.01]
  batch: [32, 64]
key: [batch, lr]
fleets: [workstation]
priority: 50
max_duration: 2h30m
stop_duration: 90s
checkpoint:
  signal: SIGUSR1
  lead: 5m
retry:
  on: [error, preemption]
  max_attempts: 3
  duration: 2d
  delay: 30s
  requeue_exit_codes: [75]
depends_on:
  when: any
  runs:
    - prepare
    - run: download
      when: finished
    - run: sweep
      each: true
concurrency:
  group: gpus
  limit: 2
runtime: process
state: running
on_change: after-finish
rerun: 1
---
type: task
name: render
commands: python render.py
array: 1-100:2%10
"""


def test_canonical_documents(tmp_path):
    """Documents come out in the canonical form: what is set, in integers, spelled in one way."""
    files = {"conf__a.yaml": "a: 1\n", "conf__b.yaml": "b: 1\n"}
    others = "\n---\n".join(
        f"type: task\nname: {name}\ncommands: [echo]\n" for name in ("prepare", "download")
    )
    desired = good(
        tmp_path,
        f"{WORKSTATION}---\n{others}\n---\ntype: task\nname: sweep\ncommands: [echo]\n"
        "matrix: {lr: [0.1, 0.01], batch: [32, 64]}\n",
        **files,
    )
    assert desired.resources[ResourceKey("fleet", "workstation")].document == {
        "nodes": {"min": 1, "target": 1, "max": 2},
        "local": {
            "cpu": 32_000,
            "memory": 256 << 30,
            "disk": 2 << 40,
            "gpu": {
                "name": ["A100"],
                "memory": {"min": 80 << 30, "max": 80 << 30},
                "count": {"min": 8, "max": 8},
            },
        },
        "sharing": "blocks",
        "blocks": 8,
        "description": "The machine under the desk",
        "tags": {"team": "vision", "rack": "7"},
        "protect": True,
    }
    assert desired.resources[ResourceKey("volume", "checkpoints")].document == {
        "fleet": "workstation",
        "path": "checkpoints/vision",
        "deletion_policy": "retain",
        "protect": True,
        "description": "What training leaves behind",
        "tags": {"team": "vision"},
    }
    element = desired.resources[run("train[batch=32,lr=0.01]")]
    assert element.document == {
        "type": "task",
        "description": "Fine-tune at several rates",
        "tags": {"team": "vision", "cost-center": "42"},
        "protect": False,
        "commands": ["python train.py --lr 0.01 --batch 32", 'echo "done, ${{ literally }}"'],
        "shell": "bash",
        "env": {"OMP_NUM_THREADS": "4", "RUN": "train[batch=32,lr=0.01]"},
        "working_dir": "code",
        "files": [
            {
                "path": f"code/{name}.yaml",
                "sha256": hashlib.sha256(f"{name}: 1\n".encode()).hexdigest(),
                "size": 5,
                "mode": 0o644,
            }
            for name in ("a", "b")
        ],
        "volumes": [
            {"name": "checkpoints", "path": "/checkpoints"},
            {"name": "checkpoints", "path": "previous", "read_only": True},
        ],
        "resources": {
            "cpu": {"min": 2000, "max": 4000},
            "memory": {"min": 16 << 30, "max": None},
            "disk": {"min": 50 << 30, "max": 50 << 30},
            "shm_size": 8 << 30,
            "gpu": {
                "vendor": "nvidia",
                "name": ["A100", "H100"],
                "memory": {"min": 40 << 30, "max": None},
                "count": {"min": 1, "max": 2},
            },
        },
        "nodes": 2,
        "matrix": {"batch": 32, "lr": 0.01},
        "fleets": ["workstation"],
        "priority": 50,
        "max_duration": 9000,
        "stop_duration": 90,
        "checkpoint": {"signal": "USR1", "lead": 300},
        "retry": {
            "on": ["error", "preemption"],
            "max_attempts": 3,
            "duration": 172_800,
            "delay": 30,
            "requeue_exit_codes": [75],
        },
        "depends_on": {
            "all": False,
            "runs": [
                {"run": "download", "when": "finished"},
                {"run": "prepare"},
                {"run": "sweep", "each": True},
            ],
        },
        "concurrency": {"group": "gpus", "limit": 2},
        "runtime": "process",
        "state": "running",
        "on_change": "after-finish",
        "rerun": 1,
    }
    assert element.parent == "train"
    assert element.element == "batch=32,lr=0.01"
    assert element.references == (
        ResourceKey("fleet", "workstation"),
        ResourceKey("volume", "checkpoints"),
    )
    assert element.upstream == ("download", "prepare", "sweep[batch=32,lr=0.01]")
    assert set(desired.contents) >= {entry["sha256"] for entry in element.document["files"]}
    assert desired.resources[run("render[3]")].document == {
        "type": "task",
        "commands": ["python render.py"],
        "concurrency": {"limit": 10},
        "index": 3,
    }


@pytest.mark.parametrize("path", sorted(KINDS.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_come_out_in_integers(path):
    """Whatever an example says of amounts, no canonical document has a fraction."""
    nodes, findings = read_documents(path.read_bytes(), path.name)
    assert findings == []
    for node in nodes:
        value = plain(node)
        if value["type"] in TYPES:
            model = TYPES[value["type"]].model.model_validate(value)
            assert fractions(model.to_canonical()) == []


def fractions(value):
    """Where a value has floats."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [one for item in value for one in fractions(item)]
    return [value] if isinstance(value, float) else []


def test_digests_are_those_of_the_documents(tmp_path):
    """Joined from parts or not, a digest is that of the canonical document."""
    desired = good(
        tmp_path, f"{TASK}array: 1-3\nenv: {{A: é, B: '\"'}}\n---\n{TASK.replace('train', 'other')}"
    )
    for one in desired.resources.values():
        assert one.digest == digest(dict(one.document))
        execution = {
            name: value for name, value in one.document.items() if name in EXECUTION_FIELDS["run"]
        }
        assert one.execution_digest == digest(execution)


@pytest.mark.parametrize(
    ("change", "is_execution"),
    [
        ("priority: 5\n", False),
        ("description: words\n", False),
        ("tags: {a: b}\n", False),
        ("max_duration: 1h\n", False),
        ("env: [A=1]\n", True),
        ("resources: {cpu: 2}\n", True),
        ("nodes: 2\n", True),
    ],
)
def test_class_of_field_decides_digest(tmp_path, change, is_execution):
    """A control or cosmetic field changes the document's digest and not the execution's."""
    before = good(tmp_path, TASK).resources[run("train")]
    after = good(tmp_path, TASK + change).resources[run("train")]
    assert after.digest != before.digest
    assert (after.execution_digest != before.execution_digest) is is_execution


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("env: [A=1, B=2]", "env: {B: 2, A: '1'}"),
        (
            "resources: {gpu: 'A100,H100:80GB:1'}",
            "resources: {gpu: {name: [H100, A100], memory: 80GB, count: 1}}",
        ),
        ("max_duration: 2h", "max_duration: 7200"),
        (
            "volumes: [data:/b, data:/a]",
            "volumes: [{path: /a/, name: data}, {name: data, path: /b}]",
        ),
        ("fleets: local", "fleets: [local]"),
        ("depends_on: [x1, x2]", "depends_on: [{run: x2}, x1]"),
        ("depends_on: x1", "depends_on: {runs: [x1]}"),
        ("retry: {on: error}", "retry: {on_events: [error]}"),
        (
            "retry: true",
            "retry: {on: [preemption, no-capacity, error, node-failure, interruption]}",
        ),
        ("concurrency: 1", "concurrency: {limit: 1}"),
        ("checkpoint: {signal: usr1, lead: 1m}", "checkpoint: {signal: SIGUSR1, lead: 60}"),
        ("array: 3,1-2", "array: [1, 2, 3]"),
    ],
)
def test_one_meaning_has_one_digest(tmp_path, one, other):
    """Two spellings of the same give the same digests."""
    world = (
        "---\ntype: fleet\nname: local\nlocal: true\n"
        "---\ntype: volume\nname: data\nfleet: local\npath: /d\n"
        "---\ntype: task\nname: x1\ncommands: [a]\n---\ntype: task\nname: x2\ncommands: [a]\n"
    )
    first = good(tmp_path, f"{TASK}{one}\n{world}")
    second = good(tmp_path, f"{TASK}{other}\n{world}")
    assert first.digest == second.digest

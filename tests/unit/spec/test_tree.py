"""Trees on disk to what they declare."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.spec.canonical import digest
from fleetform.spec.desired import ResourceKey
from fleetform.spec.documents import read_documents
from fleetform.spec.fields import EXECUTION_FIELDS
from fleetform.spec.findings import Finding, Level
from fleetform.spec.findings_text import render_findings
from fleetform.spec.kinds import KINDS as TYPES
from fleetform.spec.nodes import plain
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.cache import ReadingCache
from fleetform.spec.tree.walk import read_file
from unit.spec.trees import codes, good, load, write

MISTAKES = Path(__file__).parents[2] / "data" / "mistakes"
KINDS = Path(__file__).parents[2] / "data" / "kinds"

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


def run(name: str) -> ResourceKey:
    return ResourceKey("run", name)


def test_planted_mistakes_are_told_at_once():
    """Every mistake of a tree is told in one go, at its place, as `expected.txt` has it."""
    loaded = load_tree(MISTAKES)
    assert render_findings(loaded.findings) + "\n" == (MISTAKES / "expected.txt").read_text()


def test_obstacles_name_fields_as_people_do(tmp_path):
    """A plan says `env.TOKEN` and `volumes.instance`: no positions, and expressions alone."""
    loaded = load(
        tmp_path,
        "type: task\nname: train\ncommands: [x]\nenv: [TOKEN, 'A=${{ secrets.token }}']\n"
        "volumes: [{name: cache, instance: true, path: /a}]\n"
        "---\ntype: secret\nname: token\nenv: TOKEN\n",
    )
    obstacles = loaded.desired.beyond[run("train")].obstacles
    assert {one.field for one in obstacles} == {"env.TOKEN", "volumes.instance", "secrets.token"}


def test_broken_documents_are_named():
    """What a document with an error declares is broken, and neither planned nor forgotten."""
    loaded = load_tree(MISTAKES)
    assert loaded.desired is not None
    assert run("train") in loaded.desired.broken
    assert run("train") not in loaded.desired.resources
    # Of an unknown kind: whatever it may be, it is left alone.
    assert {
        ResourceKey(kind, "prepare") for kind in ("fleet", "run", "volume")
    } <= loaded.desired.broken


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


def test_no_environment_is_never_empty(tmp_path):
    """Without a usable environment.yaml there is no declaration at all."""
    assert load_tree(tmp_path / "nowhere").desired is None
    assert load_tree(tmp_path).desired is None
    for text in (
        "",
        "a: [",
        "type: environment\nname: x1\n",
        "- 1\n",
        "type: environment\nname: x1\nuid: abcd\n---\na: 1\n",
    ):
        loaded = load(tmp_path, TASK, environment=text)
        assert loaded.desired is None
        assert loaded.errors


def test_empty_tree_is_a_warning(tmp_path):
    """A tree without resources is allowed, and told."""
    loaded = load(tmp_path)
    assert codes(loaded) == ["empty-tree"]
    assert loaded.findings[0].level is Level.WARNING
    assert loaded.desired is not None


def test_rules_have_defaults(tmp_path):
    """Rules that are not said are the product's."""
    desired = good(
        tmp_path,
        TASK,
        environment="type: environment\nname: x1\nuid: abcd\nrules: {delete_count: 0}\n",
    )
    assert (desired.environment.rules.delete_count, desired.environment.rules.delete_percent) == (
        0,
        10,
    )


def test_unparsed_file_keeps_its_resources(tmp_path):
    """A file that cannot be parsed is unread, and the names in it are broken in every kind."""
    loaded = load(tmp_path, TASK, other="type: task\nname: other\ncommands: [\n")
    assert loaded.desired is not None
    assert loaded.desired.unread == ("other.yaml",)
    assert run("other") in loaded.desired.broken
    assert run("train") in loaded.desired.resources


def test_sorted_and_dot_folders(tmp_path):
    """Files are read in folders, but not in those whose name begins with a dot, nor other endings."""
    write(tmp_path, ".hidden/x.yaml", "type: nonsense\n")
    write(tmp_path, ".tool.yaml", "type: nonsense\n")
    desired = good(
        tmp_path,
        TASK,
        **{
            "a__b.yml": TASK.replace("train", "deep"),
            "notes.txt": "type: nonsense",
            "a__.dstack.yml": TASK.replace("train", "dstack"),
        },
    )
    assert [key.name for key in desired.resources] == ["deep", "dstack", "train"]


def test_links(tmp_path):
    """
    A link inside of the tree is read; one that leaves it is a finding.

    The documents of a file outside are missed; a folder outside has none of this tree.
    """
    tree = tmp_path / "tree"
    write(tmp_path, "outside.yaml", TASK.replace("train", "outside"))
    write(tree, ".store/inside.yaml", TASK.replace("train", "inside"))
    (tree / "in.yaml").symlink_to(".store/inside.yaml")
    (tree / "out.yaml").symlink_to("../outside.yaml")
    (tree / "loop").symlink_to(".")
    (tree / "away").symlink_to(tmp_path)
    loaded = load(tree, TASK)
    assert loaded.desired is not None
    assert [key.name for key in loaded.desired.resources] == ["inside", "train"]
    assert codes(loaded) == ["file-outside", "file-outside"]
    assert loaded.desired.unread == ("out.yaml",)


def test_pipe_does_not_hang(tmp_path):
    """A named pipe that ends in .yaml is a finding, at once."""
    os.mkfifo(tmp_path / "pipe.yaml")
    loaded = load(tmp_path, TASK)
    assert codes(loaded) == ["file-unreadable"]


def test_environment_inside_an_environment(tmp_path):
    """A folder with an environment.yaml of its own is left alone, and told."""
    loaded = load(
        tmp_path, TASK, inner__environment="type: environment\n", inner__x="type: nonsense\n"
    )
    assert codes(loaded) == ["environment-elsewhere"]


def test_vanished_file_is_a_finding(tmp_path):
    """A file that goes away between listing and reading is told, and not taken for removed."""
    found = read_file(tmp_path, "gone.yaml")
    assert isinstance(found, Finding)
    assert found.code == "file-changed"


def test_files_follow_content(tmp_path):
    """A file's digest is in the execution's; directories are expanded and sorted."""
    write(tmp_path, "runs/code/b.py", "b")
    write(tmp_path, "runs/code/a/a.py", "a")
    write(tmp_path, "runs/code/__pycache__/a.pyc", "x")
    (tmp_path / "runs/code/b.py").chmod(0o755)
    text = TASK + "files: [./code:src, ./code/b.py]\n"
    before = good(tmp_path, "", runs__t=text).resources[run("train")]
    assert [(entry["path"], entry["mode"]) for entry in before.document["files"]] == [
        ("code/b.py", 0o755),
        ("src/a/a.py", 0o644),
        ("src/b.py", 0o755),
    ]
    write(tmp_path, "runs/code/a/a.py", "changed")
    after = good(tmp_path, "").resources[run("train")]
    assert after.execution_digest != before.execution_digest


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("./missing.py", "file-missing"),
        ("../../etc/passwd:x", "not-carried-out"),
        ("/etc/passwd:x", "not-carried-out"),
        ("~/.ssh/id_rsa:x", "not-carried-out"),
        ("~/.ssh/id_rsa", "bad-path"),
        ("./link:x", "file-outside"),
        ("./x.py:/x", "not-carried-out"),
        ("./x.py:~/x", "not-carried-out"),
        ("./x.py:../x", "bad-path"),
        ("./pipe", "bad-path"),
    ],
)
def test_files_that_cannot_be(tmp_path, entry, code):
    """A file that is missing, elsewhere or no file is a finding at its entry."""
    tree = tmp_path / "tree"
    write(tree, "x.py", "")
    (tree / "link").symlink_to("/etc/hostname")
    os.mkfifo(tree / "pipe")
    loaded = load(tree, f"{TASK}files:\n  - {entry}\n")
    assert codes(loaded) == [code]
    assert (loaded.findings[0].place.line, loaded.findings[0].place.column) == (5, 5)


def test_payload_is_no_document(tmp_path):
    """YAML that a run carries along is data; where documents lie beside it, nothing is hidden."""
    files = {"conf__model": "optimizer: adam\nbad: [\n", "conf__other": "- 1\n"}
    assert good(tmp_path, f"{TASK}files: [./conf]\n", **files)
    loaded = load(tmp_path, f"{TASK}files: [.]\n")
    assert loaded.errors


def test_cache_spares_reading(tmp_path, monkeypatch):
    """What a document names is remembered by how it looks, once it has settled."""
    write(tmp_path, "data.bin", "one")
    load(tmp_path, f"{TASK}files: [./data.bin]\n")
    for settled_ns, remembered in ((10**18, 0), (-(10**18), 1)):
        monkeypatch.setattr("fleetform.spec.tree.files.SETTLED_NS", settled_ns)
        cache = ReadingCache()
        load_tree(tmp_path, cache=cache)
        assert len(cache.digests) == remembered


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def test_commit(tmp_path):
    """The commit is git's, with `+dirty` when a file differs; empty outside of git."""
    assert good(tmp_path, TASK).commit == ""
    git(tmp_path, "init", "-q")
    assert good(tmp_path, TASK).commit == ""
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "x")
    clean = good(tmp_path, TASK).commit
    assert len(clean) == 40
    assert good(tmp_path, TASK + "priority: 1\n").commit == f"{clean}+dirty"


def test_commit_runs_nothing_of_the_repository(tmp_path):
    """Neither hooks nor the file system monitor of a repository are started."""
    git(tmp_path, "init", "-q")
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(evil))
    git(tmp_path, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(evil)
    good(tmp_path, TASK)
    assert not (tmp_path / "ran").exists()


def test_ten_thousand_elements(tmp_path):
    """An array of ten thousand costs a fraction of ten thousand documents."""
    desired = good(tmp_path, f"{TASK}array: 1-10000\n")
    assert len(desired.resources) == 10_000
    one, other = desired.resources[run("train[1]")], desired.resources[run("train[2]")]
    assert one.document["commands"] is other.document["commands"]
    assert one.digest != other.digest


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "name", "commands", "env", "files", "volumes", "resources", "nodes", "array", "matrix", "key",
        "fleets", "retry", "depends_on", "concurrency", "checkpoint", "local", "blocks", "sharing",
        "fleet", "path", "tags", "description", "max_duration", "gpus", "rules", "uid",
    ]
)  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    type_name=st.sampled_from(["task", "fleet", "volume", "environment", "service", "x"]) | VALUES,
    said=st.dictionaries(FIELDS, VALUES, max_size=6),
)
def test_any_values_are_findings(tmp_path, type_name, said):
    """Whatever values a document has, loading it gives findings and never raises."""
    import json

    text = json.dumps({"type": type_name, "name": "train", "commands": ["x"], **said})
    loaded = load(tmp_path, text)
    assert loaded.desired is not None
    for finding in loaded.findings:
        assert finding.detail
        assert finding.summary


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_are_findings(tmp_path, data):
    """Whatever bytes a file has, loading it never raises, and never is an absence without word."""
    write(tmp_path, "environment.yaml", "type: environment\nname: testing\nuid: abcd\n")
    (tmp_path / "x.yaml").write_bytes(data)
    loaded = load_tree(tmp_path)
    assert loaded.desired is not None
    assert loaded.findings


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_order_means_nothing(tmp_path, data):
    """Documents, keys, parameters and their values in another order are the same tree."""
    import json

    matrix = {"lr": [0.1, 0.01, 1e-5], "batch": [32, 64], "model": ["a/b", "c d"]}
    documents = [
        {"type": "fleet", "name": "local", "local": {"cpu": 8, "memory": "8GB"}},
        {"type": "task", "name": "one", "commands": ["x", "y"], "env": {"A": "1", "B": "2"}},
        {
            "type": "task",
            "name": "sweep",
            "commands": ["echo ${{ matrix.lr }} ${{ env.M }}"],
            "env": {"M": "${{ matrix.model }}"},
            "matrix": matrix,
            "resources": {"cpu": "${{ matrix.batch }}"},
            "depends_on": ["one"],
        },
    ]  # fmt: skip

    def shuffled(value):
        if isinstance(value, dict):
            keys = data.draw(st.permutations(sorted(value)))
            return {key: value[key] if key == "commands" else shuffled(value[key]) for key in keys}
        return data.draw(st.permutations(value)) if isinstance(value, list) else value

    def texts(values):
        return "\n---\n".join(json.dumps(value) for value in values)

    plain = load(tmp_path, texts(documents)).desired
    mixed = load(
        tmp_path, texts(shuffled(one) for one in data.draw(st.permutations(documents)))
    ).desired
    assert plain is not None
    assert mixed is not None
    assert len(plain.resources) == 14
    assert plain.digest == mixed.digest
    assert list(plain.resources) == list(mixed.resources)


def test_another_value_adds_elements_only(tmp_path):
    """A value more in a sweep makes elements more, and changes none of the others."""
    text = f"{TASK}matrix: {{lr: [0.1, 0.01], batch: [1, 2]}}\n"
    before = good(tmp_path, text).resources
    after = good(tmp_path, text.replace("0.01", "0.01, 0.5")).resources
    assert len(after) == 6
    assert all(after[key] == one for key, one in before.items())


def test_quotes_around_a_value_change_no_element(tmp_path):
    """Its name, its commands and its variables are the same, and so is what decides a rerun."""
    text = f"{TASK}matrix: {{lr: [0.1, 1], keep: true}}\n"
    plain = good(tmp_path, text).resources
    quoted = text.replace("[0.1, 1]", '["0.1", "1"]').replace("true", "'true'")
    assert good(tmp_path, quoted).resources == plain
    (element, *_) = plain.values()
    assert element.document["matrix"] == {"lr": 0.1, "keep": True}
    others = good(tmp_path, text.replace("[0.1, 1]", '["0.10", " 1"]')).resources
    assert [one.document["matrix"]["lr"] for one in others.values()] == [" 1", "0.10"]


def test_a_field_that_is_read_is_given_what_was_written(tmp_path):
    """What stands for a parameter elsewhere decides nothing there: a folder may be called `1`."""
    text = f'{TASK}matrix: {{where: ["/1", "/2"], count: [1]}}\nnodes: ${{{{ matrix.count }}}}\n'
    folders = f"{text}working_dir: ${{{{ matrix.where }}}}\n"
    assert [one.document["working_dir"] for one in good(tmp_path, folders).resources.values()] == [
        "/1",
        "/2",
    ]


def test_key_names_elements(tmp_path):
    """With `key`, a parameter outside of it may change its value, and the element stays."""
    text = f"{TASK}matrix: {{lr: [0.1, 0.2], epochs: 5}}\nkey: lr\n"
    before = good(tmp_path, text).resources
    after = good(tmp_path, text.replace("5", "6")).resources
    assert list(before) == list(after) == [run("train[lr=0.1]"), run("train[lr=0.2]")]
    assert before != after

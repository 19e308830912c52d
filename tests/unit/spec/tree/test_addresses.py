"""What `environment.yaml` says of single resources: each mistake is told where it stands."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level
from fleetform.spec.tree import load_tree
from unit.spec.trees import ENVIRONMENT

TREE = """
type: fleet
name: local
nodes: 1
local: {cpu: 8, memory: 4GB}
---
type: volume
name: data
fleet: local
path: /data
---
type: task
name: train
commands: ["true"]
---
type: task
name: sweep
matrix: {lr: [0.1, 0.2]}
commands: ["true"]
"""


def run(name):
    return ResourceKey("run", name)


@pytest.fixture
def load(tmp_path):
    (tmp_path / "tree.yaml").write_text(TREE)

    def load_with(said):
        (tmp_path / "environment.yaml").write_text(f"{ENVIRONMENT}{said}\n")
        return load_tree(tmp_path)

    return load_with


def errors(loaded):
    return [(one.code, one.place.line, one.place.column) for one in loaded.errors]


def test_chains_lead_to_the_last_name(load):
    """Whoever renamed twice keeps both entries, and each leads to what is declared now."""
    loaded = load("moved: [{from: run/a1, to: run/b1}, {from: run/b1, to: run/train}]")
    assert loaded.errors == ()
    assert loaded.desired.moved == ((run("a1"), run("train")), (run("b1"), run("train")))


def test_an_element_has_one_spelling(load):
    """`lr=0.10` and `lr=0.1` are one element, however they are written in an address."""
    loaded = load('moved: [{from: run/old, to: "run/sweep[lr=0.1]"}]')
    assert loaded.errors == ()
    assert loaded.desired.moved == ((run("old"), run("sweep[lr=0.1]")),)


def test_what_is_let_go_and_taken_in_is_known(load):
    """The two lists arrive as they are written."""
    loaded = load("removed: [fleet/old, volume/old]\nimport: [volume/data, fleet/local]")
    assert loaded.errors == ()
    assert [str(key) for key in loaded.desired.removed] == ["fleet/old", "volume/old"]
    assert [str(key) for key in loaded.desired.imports] == ["volume/data", "fleet/local"]


@pytest.mark.parametrize(
    ("said", "detail", "advice"),
    [
        ("moved: [{from: run/old, to: run/trian}]", "trian", "`run/train`"),
        ('moved: [{from: run/old, to: "run/sweep[lr=3]"}]', "lr=3", ""),
        ("import: [volume/dta]", "dta", "`volume/data`"),
    ],
)
def test_what_is_declared_no_more_is_a_warning(load, said, detail, advice):
    """It may have been carried out long ago, which the ledger knows and not the language."""
    loaded = load(said)
    assert loaded.desired is not None
    (found,) = loaded.findings
    assert (found.code, found.level) == ("unknown-reference", Level.WARNING)
    assert detail in found.detail
    assert advice in found.advice


@pytest.mark.parametrize(
    ("said", "code", "detail", "advice"),
    [
        ("moved: [{from: run/train, to: run/sweep}]", "contradiction", "still declared", "Rename"),
        ('moved: [{from: "run/sweep[lr=0.1]", to: run/train}]', "contradiction", "still", ""),
        (
            "moved: [{from: run/aa, to: run/bb}, {from: run/bb, to: run/aa}]",
            "contradiction",
            "run/aa → run/bb → run/aa",
            "Remove",
        ),
        (
            "moved: [{from: run/aa, to: run/train}, {from: run/bb, to: run/train}]",
            "contradiction",
            "`run/aa` is already renamed to `run/train`",
            "Keep one",
        ),
        (
            "moved: [{from: run/aa, to: run/train}, {from: run/aa, to: run/sweep}]",
            "said-twice",
            "is already renamed to",
            "Keep one",
        ),
        ("moved: [{from: run/aa, to: fleet/local}]", "contradiction", "another kind", ""),
        ("moved: [{from: run/train, to: run/train}]", "contradiction", "own name", "Remove"),
        ("removed: [run/train]", "contradiction", "still declared", "Remove its document"),
        ("removed: [run/old, run/old]", "said-twice", "twice", ""),
        (
            "removed: [secret/token]",
            "bad-value",
            "only fleets, volumes and runs can be named here",
            "",
        ),
        ("removed: [train]", "bad-value", "kind", "run/train"),
        (
            "removed: [task/old]",
            "bad-value",
            "the kind of tasks, services and dev environments is `run`.",
            "run/old",
        ),
        ("import: [run/train]", "bad-value", "runs cannot be adopted.", "moved"),
        (
            "removed: [run/aa]\nmoved: [{from: run/aa, to: run/train}]",
            "contradiction",
            ", so it cannot be released too.",
            "Keep one",
        ),
    ],
)
def test_a_mistake_stops_the_environment(load, said, code, detail, advice):
    """An entry that is half understood could remove what it was to keep."""
    loaded = load(said)
    assert loaded.desired is None
    (found,) = loaded.errors
    assert found.code == code
    assert detail in found.detail
    assert advice in found.advice
    assert found.place.file == "environment.yaml"
    assert found.place.line > 3


def test_what_a_broken_document_declares_is_not_unknown(load, tmp_path):
    """One mistake is told once: the document's own."""
    (tmp_path / "more.yaml").write_text("type: task\nname: broken\ncommandz: []\n")
    loaded = load("moved: [{from: run/old, to: run/broken}]")
    assert {one.code for one in loaded.errors} == {"unknown-field"}
    assert loaded.desired is not None


def test_a_base_has_none(tmp_path):
    """Nothing of an abstract environment was ever there, so nothing of it was renamed."""
    text = "type: environment\nname: base\nabstract: true\nremoved: [fleet/old]\n"
    (tmp_path / "environment.yaml").write_text(text)
    (found,) = load_tree(tmp_path).errors
    assert found.code == "contradiction"
    assert "`removed`" in found.detail

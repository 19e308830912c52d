from __future__ import annotations

import json

import pytest

from unit.spec.overlay.environments import FLEET, extending, write

TRAIN = "type: task\nname: train\ncommands: [a]\n"


@pytest.fixture
def trees(tmp_path, monkeypatch):
    """A base and an environment on it, and the folder above both to type in."""
    monkeypatch.chdir(tmp_path)
    return write(
        tmp_path, base__fleet=FLEET, base__train=TRAIN,
        staging__environment=extending("patches: [{target: run/train, merge: {nodes: 2}}]\n"),
    )  # fmt: skip


def test_documents_are_printed_with_their_origins(typed, trees):
    """The whole environment by its folder, or from within it."""
    code, out, err = typed("render", "staging")
    assert (code, err) == (0, "")
    assert out.count("---\n") == 1
    assert "nodes: 2  # environment.yaml:5 patch\n" in out


def test_names_choose_documents(typed, trees, monkeypatch):
    """With the folder or without, by pattern, and for scripts."""
    assert "name: local" not in typed("render", "staging", "run/train")[1]
    monkeypatch.chdir(trees / "staging")
    code, out, _err = typed("render", "loc*", "--origins", "none")
    assert (code, out) == (0, FLEET)
    (value,) = json.loads(typed("render", "train", "--format", "json")[1])
    assert value["document"]["nodes"] == 2
    assert value["origins"]["/nodes"] == "environment.yaml:5 patch"
    assert json.loads(typed("render", "train", "--json")[1]) == [value]


def test_a_name_that_is_none_is_told_what_was_meant(typed, trees):
    """With the names there are."""
    code, out, err = typed("render", "staging", "trian")
    assert (code, out) == (1, "")
    assert "no document is called trian" in err
    assert "did you mean train?" in err
    assert "--json and --format yaml" in typed("render", "staging", "--json", "--format", "yaml")[2]


def test_what_has_an_error_prints_its_findings(typed, trees):
    """Where they are, and nothing else."""
    write(trees, base__train=TRAIN + "node: 2\n")
    code, out, err = typed("render", "staging")
    assert (code, out) == (1, "")
    assert "../base/train.yaml:4:1: error[unknown-field]" in err

"""An environment on a base: what belongs to it, where it may lie, where findings point."""

from __future__ import annotations

import subprocess

import pytest

from fleetform.spec.desired import ResourceKey, Rules
from fleetform.spec.tree import load_tree, read_environment
from unit.spec.overlay.environments import (
    FLEET,
    UID,
    environment,
    extending,
    good,
    load,
    places,
    run,
    write,
)

TRAIN = "type: task\nname: train\ncommands: [python train.py]\nfiles: [train.py]\n"


def test_documents_of_the_base_belong_to_the_environment(tmp_path):
    """Beside its own, each with the place where it is written."""
    desired = good(
        tmp_path, base__fleet=FLEET, base__runs__train=TRAIN.replace("files: [train.py]\n", ""),
        staging__environment=extending(), staging__own="type: task\nname: own\ncommands: [a]\n",
    )  # fmt: skip
    assert {str(key): one.place.file for key, one in desired.resources.items()} == {
        "fleet/local": "../base/fleet.yaml",
        "run/own": "own.yaml",
        "run/train": "../base/runs/train.yaml",
    }


def test_files_lie_beside_the_document_that_names_them(tmp_path):
    """In the base for the base's, in the environment for those of its patches."""
    files = {"base__fleet": FLEET, "base__train": TRAIN, "base__train.py": "base"}
    desired = good(tmp_path, **files, staging__environment=extending())
    (path,) = desired.contents.values()
    assert path == str(tmp_path / "base/train.py")
    patches = """patches:
  - {target: run/train, patch: [{op: add, path: /files/-, value: ./extra.py}]}
"""
    desired = good(
        tmp_path, **files, staging__environment=extending(patches), **{"staging__extra.py": "x"}
    )
    assert sorted(desired.contents.values()) == [
        str(tmp_path / "base/train.py"),
        str(tmp_path / "staging/extra.py"),
    ]
    # Not the other way round: the environment's file is not the base's.
    (tmp_path / "base/train.py").rename(tmp_path / "staging/train.py")
    loaded = load_tree(tmp_path / "staging")
    assert places(loaded.errors) == [("file-missing", "../base/train.yaml:4:9")]


def test_files_of_a_base_stay_in_it(tmp_path):
    """A base is no way to files that no tree of its own could name."""
    loaded = load(
        tmp_path, base__fleet=FLEET, base__train=TRAIN.replace("train.py]", '"../secret:s"]'),
        staging__environment=extending(), secret="x",
    )  # fmt: skip
    assert [place for _, place in places(loaded.findings)] == ["../base/train.yaml:4:9"]
    assert loaded.desired is not None
    assert loaded.desired.contents == {}
    assert [str(key) for key in loaded.desired.resources] == ["fleet/local"]


def test_a_base_may_have_a_base(tmp_path):
    """What the upper ones say wins, value by value and rule by rule."""
    desired = good(
        tmp_path,
        common__environment="type: environment\nname: common\nabstract: true\n"
        "values: {a: 1, b: 1, c: 1}\nrules: {delete_percent: 1, delete_count: 1}\n",
        common__train="type: task\nname: train\n"
        "commands: ['${{ values.a }} ${{ values.b }} ${{ values.c }}']\n",
        base__environment="type: environment\nname: base\nabstract: true\nextends: ../common\n"
        "values: {b: 2, c: 2}\nrules: {delete_count: 2}\n"
        "patches: [{target: run/train, merge: {priority: 2, nodes: 2}}]\n",
        base__fleet=FLEET,
        staging__environment=extending(
            "values: {c: 3}\nrules: {allow_destroy: true}\n"
            "patches: [{target: run/train, merge: {nodes: 3}}]\n"
        ),
    )
    train = run(desired).document
    assert train["commands"] == ["1 2 3"]
    assert (train["priority"], train["nodes"]) == (2, 3)
    assert desired.environment.rules == Rules(allow_destroy=True, delete_percent=1, delete_count=2)


def test_a_base_needs_no_file_of_its_own(tmp_path):
    """A folder of documents is one, and an environment that is applied itself too."""
    good(tmp_path, base__fleet=FLEET, staging__environment=extending())
    desired = good(tmp_path, base__environment=environment(name="production").replace(UID, "abcd"))
    assert (desired.environment.name, desired.environment.uid) == ("staging", UID)


def test_a_base_by_itself_is_checked_and_not_planned(tmp_path):
    """It is a note and no error, so that a pipeline may check every folder."""
    loaded = load(
        tmp_path, "base", base__fleet=FLEET,
        base__environment="type: environment\nname: base\nabstract: true\n",
    )  # fmt: skip
    assert loaded.desired is None
    assert loaded.errors == ()
    assert places(loaded.findings) == [("abstract-environment", "environment.yaml:3:1")]
    assert read_environment(tmp_path / "base")[0] is None


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("name: base", "missing-field"),
        (f"name: base\nabstract: true\nuid: {UID}", "contradiction"),
        ("name: base\nabstract: true\nvalues: {1x: 2}", "bad-name"),
        ("name: base\nabstract: true\nvalues: {x: [1]}", "wrong-type"),
        ("name: base\nabstract: true\npatches: [{target: train, delete: true}]", "bad-value"),
        ("name: base\nabstract: true\npatches: [{target: run/a}]", "bad-patch"),
        (
            "name: base\nabstract: true\npatches: [{target: run/a, merge: {}, delete: true}]",
            "bad-patch",
        ),
    ],
)
def test_a_base_that_is_wrong_stops_what_extends_it(tmp_path, said, code):
    """Told in its own file."""
    loaded = load(
        tmp_path, base__environment=f"type: environment\n{said}\n", base__fleet=FLEET,
        staging__environment=extending(),
    )  # fmt: skip
    assert loaded.desired is None
    assert [(one.code, one.place.file) for one in loaded.errors] == [
        (code, "../base/environment.yaml")
    ]
    # Whose the tree is does not depend on it: `ps` still works.
    assert read_environment(tmp_path / "staging")[0] is not None


@pytest.mark.parametrize(
    "named", ["/etc", "~/base", "..\\base", "'\"../b\\0ase\"'", "../gone", "../base/fleet.yaml", ".", "..", "./below", "../linked"]
)  # fmt: skip
def test_a_base_that_may_not_be_is_refused(tmp_path, named):
    """At its name, and then nothing is planned: an absent base is never an empty one."""
    (tmp_path / "outside").mkdir()
    trees = tmp_path / "trees"
    write(trees, base__fleet=FLEET, staging__below__x=FLEET)
    (trees / "linked").symlink_to("../outside")
    loaded = load(
        trees, staging__environment=environment(f"extends: {named.replace(chr(39), '')}\n")
    )
    assert places(loaded.errors) == [("bad-base", "environment.yaml:4:10")]
    assert loaded.desired is None


def test_in_a_repository_the_base_lies_in_the_same(tmp_path):
    """Anywhere in it, and nowhere else: the commit has to say what is in it."""
    repository = tmp_path / "repository"
    write(repository, shared__deep__base__fleet=FLEET)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    said = environment("extends: ../../shared/deep/base\n")
    good(repository, "teams/staging", teams__staging__environment=said)
    write(tmp_path, elsewhere__fleet=FLEET)
    loaded = load(
        repository, "teams/staging",
        teams__staging__environment=environment("extends: ../../../elsewhere\n"),
    )  # fmt: skip
    assert places(loaded.errors) == [("bad-base", "environment.yaml:4:10")]
    subprocess.run(["git", "init", "-q", str(repository / "shared")], check=True)
    loaded = load(repository, "teams/staging", teams__staging__environment=said)
    assert places(loaded.errors) == [("bad-base", "environment.yaml:4:10")]


def test_a_circle_is_told_with_its_path(tmp_path):
    """Where it closes."""
    loaded = load(
        tmp_path, staging__environment=extending(),
        base__environment="type: environment\nname: base\nabstract: true\nextends: ../staging\n",
    )  # fmt: skip
    (error,) = loaded.errors
    assert error.place.file == "../base/environment.yaml"
    assert "staging → base → staging" in error.detail


def test_bases_have_an_end(tmp_path):
    """Whoever reads a tree has to read all of them."""
    for number in range(12):
        write(
            tmp_path,
            **{
                f"b{number}__environment": "type: environment\nname: base\nabstract: true\n"
                f"extends: ../b{number + 1}\n"
            },
        )
    loaded = load(tmp_path, staging__environment=environment("extends: ../b0\n"))
    assert [one.code for one in loaded.errors] == ["bad-base"]


def test_a_document_in_both_is_to_be_patched(tmp_path):
    """Neither is taken, and the finding says how it is done."""
    loaded = load(
        tmp_path, base__fleet=FLEET, staging__environment=extending(), staging__fleet=FLEET
    )
    assert places(loaded.errors) == [("declared-in-base", "fleet.yaml:2:7")]
    assert "patches: [{target: fleet/local" in loaded.errors[0].advice
    assert loaded.desired is not None
    assert loaded.desired.broken == {ResourceKey("fleet", "local")}


def test_a_mistake_in_the_base_is_told_in_the_base(tmp_path):
    """With the line it stands in."""
    loaded = load(tmp_path, base__fleet=FLEET + "blokcs: 2\n", staging__environment=extending())
    assert places(loaded.errors) == [("unknown-field", "../base/fleet.yaml:4:1")]
    assert loaded.errors[0].text == "blokcs: 2"


def test_unsaved_text_stands_for_files_of_the_base_too(tmp_path):
    """An editor that has both folders open shows what is typed in either."""
    write(tmp_path, base__fleet=FLEET, staging__environment=extending())
    buffers = {"../base/fleet.yaml": (FLEET + "description: x\n").encode()}
    loaded = load_tree(tmp_path / "staging", buffers=buffers)
    assert loaded.desired is not None
    key = ResourceKey("fleet", "local")
    assert loaded.desired.resources[key].document["description"] == "x"


def test_a_change_in_the_base_is_a_change_of_the_commit(tmp_path):
    """`+dirty` tells of files that are in no commit, wherever the environment has them."""
    write(tmp_path, base__fleet=FLEET, staging__environment=extending(), other__x="a: 1\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    assert not good(tmp_path).commit.endswith("+dirty")
    write(tmp_path, other__x="a: 2\n")
    assert not good(tmp_path).commit.endswith("+dirty")
    write(tmp_path, base__fleet=FLEET + "description: x\n")
    assert good(tmp_path).commit.endswith("+dirty")

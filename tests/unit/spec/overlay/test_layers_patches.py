"""Patches in a tree: which documents they reach, in what order, and what is told of them."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from unit.spec.overlay.environments import FLEET, environment, extending, good, load, places, run

TRAIN = "type: task\nname: train\ncommands: [a]\nnodes: 1\n"
BASE = {"base__fleet": FLEET, "base__train": TRAIN}


def patched(tmp_path, patches, **files):
    return good(tmp_path, **BASE, **files, staging__environment=extending(f"patches:\n{patches}"))


def test_patches_are_carried_out_in_order(tmp_path):
    """Each on what those before it left."""
    desired = patched(
        tmp_path,
        """  - {target: run/train, merge: {nodes: 2}}
  - target: run/train
    patch: [{op: test, path: /nodes, value: 2}, {op: replace, path: /nodes, value: 3}]
  - {target: "*/train", merge: {priority: 7, nodes: null}}
""",
    )
    assert "nodes" not in run(desired).document
    assert run(desired).document["priority"] == 7


@pytest.mark.parametrize("target", ["run/train", "task/train", "run/*", "*/tr?in", "r*n/train"])
def test_targets_are_kinds_or_types_and_names(tmp_path, target):
    """With the patterns that people know from file names."""
    desired = patched(tmp_path, f"  - {{target: '{target}', merge: {{description: hit}}}}\n")
    assert run(desired).document["description"] == "hit"
    assert "description" not in desired.resources[ResourceKey("fleet", "local")].document


def test_own_documents_are_patched_too(tmp_path):
    """An environment without a base may say what all its runs have."""
    desired = good(
        tmp_path, staging__fleet=FLEET, staging__train=TRAIN,
        staging__environment=environment("patches: [{target: run/*, merge: {priority: 3}}]\n"),
    )  # fmt: skip
    assert run(desired).document["priority"] == 3


def test_a_document_of_the_base_can_be_left_out(tmp_path):
    """It is not declared, and what needs it is told so."""
    desired = patched(tmp_path, "  - {target: run/train, delete: true}\n")
    assert [str(key) for key in desired.resources] == ["fleet/local"]
    assert desired.broken == frozenset()


def test_a_patch_in_a_file(tmp_path):
    """A mapping is merged, a list is steps; neither is read as a document."""
    desired = patched(
        tmp_path,
        "  - {target: run/train, file: patches/merge.yaml}\n"
        "  - {target: run/train, file: patches/steps.yaml}\n",
        staging__patches__merge="priority: 4\n",
        staging__patches__steps="- {op: add, path: /commands/-, value: b}\n",
    )
    assert run(desired).document["priority"] == 4
    assert run(desired).document["commands"] == ["a", "b"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{target: run/tarin, merge: {nodes: 2}}", ("patch-matches-nothing", 6, 14)),
        ("{target: run/train, file: gone.yaml}", ("file-missing", 6, 31)),
        ("{target: run/train, file: ../base/train.yaml}", ("file-outside", 6, 31)),
        ("{target: run/train, file: two.yaml}", ("bad-patch", 6, 31)),
        ("{target: run/train, patch: [{op: ad, path: /a}]}", ("bad-patch", 6, 38)),
        ("{target: run/train, patch: [{op: remove, path: x}]}", ("bad-patch", 6, 52)),
        ("{target: run/train, patch: []}", ("bad-patch", 6, 25)),
    ],
)
def test_a_patch_that_means_nothing_stops_the_environment(tmp_path, entry, expected):
    """Nobody can tell what it was to change, and what goes on without it may be dear."""
    loaded = load(
        tmp_path, **BASE, staging__two="a: 1\n---\na: 2\n",
        staging__environment=extending(f"patches:\n  - {entry}\n"),
    )  # fmt: skip
    code, line, column = expected
    assert (code, f"environment.yaml:{line}:{column}") in places(loaded.errors)
    assert loaded.desired is None


def test_a_target_that_nothing_matches_is_told_what_was_meant(tmp_path):
    """By edit distance, as every name."""
    loaded = load(
        tmp_path, **BASE,
        staging__environment=extending("patches: [{target: run/tran, delete: true}]\n"),
    )  # fmt: skip
    assert loaded.errors[0].advice == "Did you mean `run/train`?"


def test_what_cannot_be_read_is_not_missed(tmp_path):
    """The target may be in the file that has a mistake of its own."""
    loaded = load(
        tmp_path, base__fleet=FLEET, base__train="type: [\n",
        staging__environment=extending("patches: [{target: run/train, delete: true}]\n"),
    )  # fmt: skip
    assert {one.place.file for one in loaded.errors} == {"../base/train.yaml"}
    assert loaded.desired is not None
    assert loaded.desired.unread == ("../base/train.yaml",)


def test_a_step_that_does_not_fit_holds_back_its_document_alone(tmp_path):
    """The others are what they are; it is told at the step, with the document's name."""
    loaded = load(
        tmp_path, **BASE,
        staging__environment=extending(
            "patches:\n  - target: '*/*'\n    patch: [{op: replace, path: /nodes, value: 2}]\n"
        ),
    )  # fmt: skip
    assert places(loaded.errors) == [("patch-failed", "environment.yaml:7:33")]
    assert loaded.errors[0].detail.startswith("For fleet/local (../base/fleet.yaml): ")
    assert loaded.desired is not None
    assert loaded.desired.broken == {ResourceKey("fleet", "local")}
    assert run(loaded.desired).document["nodes"] == 2


def test_a_wrong_value_is_told_where_it_is_written(tmp_path):
    """In the patch, not in the document that it changes; and in the file of a patch."""
    loaded = load(
        tmp_path, **BASE, staging__p="nodes: many\nretri: true\n",
        staging__environment=extending(
            "patches:\n  - {target: run/train, merge: {prioriti: 3}}\n"
            "  - {target: run/train, file: p.yaml}\n"
        ),
    )  # fmt: skip
    assert places(loaded.errors) == [
        ("unknown-field", "environment.yaml:6:33"),
        ("bad-value", "p.yaml:1:8"),
        ("unknown-field", "p.yaml:2:1"),
    ]
    assert loaded.errors[0].text == "  - {target: run/train, merge: {prioriti: 3}}"


def test_an_expression_may_come_with_a_patch(tmp_path):
    """Into a file that has none."""
    desired = good(
        tmp_path, **BASE,
        staging__environment=extending(
            "values: {size: 3, word: hi}\n"
            "patches:\n  - {target: run/train, merge: {nodes: '${{ values.size }}', commands: ['${{ values.word }}']}}\n"
        ),
    )  # fmt: skip
    assert run(desired).document["nodes"] == 3
    assert run(desired).document["commands"] == ["hi"]


def test_a_value_that_nobody_gives_is_told(tmp_path):
    """At the expression, with the names that there are."""
    loaded = load(
        tmp_path, base__fleet=FLEET, base__train=TRAIN.replace("[a]", "['${{ values.buckt }}']"),
        staging__environment=extending("values: {bucket: x}\n"),
    )  # fmt: skip
    assert [one.code for one in loaded.errors] == ["unknown-expression"]
    assert "`bucket`" in loaded.errors[0].advice


def test_what_patches_come_to_has_an_end(tmp_path):
    """A megabyte into each of a thousand documents would be a gigabyte."""
    runs = "---\n".join(TRAIN.replace("train", f"train-{number}") for number in range(600))
    tags = "".join(f"        t{number}: x\n" for number in range(2000))
    loaded = load(
        tmp_path, base__fleet=FLEET, base__runs=runs,
        staging__environment=extending(
            f"patches:\n  - target: run/*\n    merge:\n      tags:\n{tags}"
        ),
    )  # fmt: skip
    assert places(loaded.errors) == [("patch-failed", "environment.yaml:6:13")]
    assert loaded.desired is None

from __future__ import annotations

import difflib
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.edit import (
    add_item,
    append_document,
    remove,
    remove_document,
    rename_key,
    set_value,
)
from fleetform.spec.syntax.emit import scalar_text
from fleetform.spec.syntax.files import FileChanged, replace_file
from fleetform.spec.syntax.layout import EditRefused
from unit.spec.texts import VALUES, texts

TRAIN = """\
# yaml-language-server: $schema=x.json
---
type: task     # what it is
name: 'train'  # who it is

env:           # two spellings
- LR=0.1
-  DEBUG=1

# How much.
resources:
    gpu: A100:80GB:8   # all of them
    # memory: 1TB
    memory: "32GB"
commands:
  - |  # as it was
    set -e

    python train.py

  - echo done
...
---
{type: volume, name: data, path: [a, b]}
"""


def values(text):
    """What the loader reads, documents in order."""
    nodes, findings = read_documents(text.encode(), "x.yaml")
    assert findings == []
    return [plain(node) for node in nodes]


def changed(before, after):
    """The lines that went and the lines that came."""
    told = list(difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True)))
    gone = [line[2:].rstrip("\n") for line in told if line.startswith("- ")]
    return gone, [line[2:].rstrip("\n") for line in told if line.startswith("+ ")]


SETS = [
    (("resources", "gpu"), 2,
     ["    gpu: A100:80GB:8   # all of them"], ["    gpu: 2   # all of them"]),
    (("name",), "other", ["name: 'train'  # who it is"], ["name: 'other'  # who it is"]),
    (("resources", "memory"), "64GB", ['    memory: "32GB"'], ['    memory: "64GB"']),
    (("resources", "disk"), "100GB", [], ["    disk: 100GB"]),
    (("env", 1), "DEBUG=0", ["-  DEBUG=1"], ["-  DEBUG=0"]),
    (("env", 2), "A=yes no", [], ["- A=yes no"]),
    (("priority",), 5, [], ["priority: 5"]),
    (("tags", "team"), "on", [], ["tags:", '  team: "on"']),
    (("commands", 1), "a\nb\n", ["  - echo done"], ["  - |", "    a", "    b"]),
    (("commands", 0), "python train.py",
     ["  - |  # as it was", "    set -e", "", "    python train.py"],
     ["  - python train.py  # as it was"]),
    (("env",), {"LR": "0.1"}, ["- LR=0.1", "-  DEBUG=1"], ['  LR: "0.1"']),
    (("resources",), "none", None, ["resources: none"]),
    (("name",), ["a", "b"], ["name: 'train'  # who it is"],
     ["name:  # who it is", "- a", "- b"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "gone", "come"), SETS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_field_is_set_and_nothing_else_is_touched(path, value, gone, come, newline, mark):
    """Only lines of that field differ, whatever stands around it and however lines end."""
    before = mark + TRAIN.replace("\n", newline)
    after = set_value(before, "run/train", path, value)
    went, came = changed(before, after)
    ends = newline.removesuffix("\n")
    assert came == [line + ends for line in come]
    if gone is not None:
        assert went == [line + ends for line in gone]
    assert after.startswith(mark)


def test_the_same_value_is_no_edit():
    """Setting what is there returns the text as it is."""
    assert set_value(TRAIN, 0, ("resources", "gpu"), "A100:80GB:8") == TRAIN


def test_a_document_in_braces_stays_in_braces():
    """What stands in brackets is changed in there."""
    text = set_value(TRAIN, "volume/data", ("path", 0), "c, d")
    text = add_item(text, "data", ("path",), "e")
    text = add_item(text, "data", ("path",), "0", index=0)
    text = set_value(text, "data", ("tags",), {"a": 1})
    text = remove(text, "data", ("type",))
    assert text.endswith('{name: data, path: ["0", "c, d", b, e], tags: {a: 1}}\n')


def test_what_is_removed_takes_its_comment_along():
    """A comment right above a field describes it; one further up does not."""
    assert changed(TRAIN, remove(TRAIN, 0, ("resources", "memory"))) == (
        ["    # memory: 1TB", '    memory: "32GB"'], [])  # fmt: skip
    gone, come = changed(TRAIN, remove(TRAIN, 0, ("resources",)))
    assert gone[0] == "# How much."
    assert come == []


def test_the_last_item_leaves_an_empty_list():
    """An empty list is not the same as no list, and the field is removed by its own name."""
    text = "a:\n  # one\n  - x # two\nb: 1\n"
    assert remove(text, 0, ("a", 0)) == "a: []\nb: 1\n"
    assert remove("a: [x, ]\n", 0, ("a", 0)) == "a: []\n"


def test_the_first_field_behind_a_dash_is_removed():
    """The dash stays for the next one."""
    text = "volumes:\n  - name: data\n    # where\n    path: /data\n"
    assert remove(text, 0, ("volumes", 0, "name")) == "volumes:\n  - path: /data\n"


def test_a_key_is_renamed_in_its_quotes():
    """The value and its comment stay."""
    text = 'a: 1\n"gpus": 2 # two\n'
    assert rename_key(text, 0, ("gpus",), "gpu") == 'a: 1\n"gpu": 2 # two\n'
    with pytest.raises(EditRefused, match="already"):
        rename_key(text, 0, ("gpus",), "a")


def test_a_new_field_stands_where_it_is_asked_for():
    """Below the named one, comments on its line left there."""
    text = "type: task # kind\n\ncommands: [a]"
    assert set_value(text, 0, ("name",), "x", after="type") == (
        "type: task # kind\nname: x\n\ncommands: [a]"
    )
    assert set_value(text, 0, ("name",), "x") == f"{text}\nname: x"


def test_documents_come_and_go():
    """A document is appended behind a marker, and removed with its own part of the text."""
    text = append_document("# only words", {"type": "task", "name": "one"})
    assert text == "# only words\ntype: task\nname: one\n"
    both = append_document(text, {"type": "task", "name": "two"})
    assert both == f"{text}---\ntype: task\nname: two\n"
    assert remove_document(both, "two") == text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: &x {k: 1}\nb: *x\n", ("a", "k")),
        ("a: &x {k: 1}\nb: *x\n", ("b", "k")),
        ("a: &x\n  k: 1\nb: {<<: *x, l: 2}\n", ("a", "k")),
        ("a: [x]\n", ("a", "k")),
        ("a: x\n", ("a", "k")),
        ("a: 'x\n", ("a",)),
    ],
)
def test_what_would_change_something_else_is_refused(text, path):
    """A value shared through an anchor, a place that is none, and a broken file."""
    with pytest.raises(EditRefused):
        set_value(text, 0, path, 2)


def test_what_a_merge_brings_in_is_overridden():
    """A mapping's own field wins, and the anchor stays as it is."""
    text = "a: &x {k: 1}\nb:\n  <<: *x\n  l: 2\n"
    assert set_value(text, 0, ("b", "k"), 3) == f"{text}  k: 3\n"


@given(st.text(max_size=30))
def test_any_text_is_written_so_that_it_is_read_again(text):
    """By our loader, and by a reader of YAML 1.1 too."""
    for quote in ("", "'", '"'):
        shown = scalar_text(text, quote=quote)
        assert values(f"a: {shown}\n") == [{"a": text}]
        assert values(f"a: [{scalar_text(text, in_flow=True, quote=quote)}]\n") == [{"a": [text]}]
        assert yaml.safe_load(f"a: {shown}\n") == {"a": text}


def paths(value, path=()):
    """Every place of a value, and places where something could be."""
    yield (*path, "new")
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for index in range(len(value) + 1):
            yield (*path, index)
        for index, item in enumerate(value):
            yield from paths(item, (*path, index))


def comments_of(text):
    from fleetform.spec.syntax.layout import read_layout

    return [comment.text for comment in read_layout(text).comments]


@settings(max_examples=60, deadline=None)
@given(st.data(), texts(), VALUES)
def test_an_edit_does_what_was_asked_or_nothing(data, text, value):
    """Of the documents only the place that was named has changed."""
    before = values(text)
    number = data.draw(st.integers(0, len(before) - 1))
    path = data.draw(st.sampled_from(list(paths(before[number]))))
    try:
        after = set_value(text, number, path, value)
    except EditRefused as refused:
        # What is below a scalar, or in a list by name, cannot be set. Nothing else is refused.
        if "nothing below" in refused.message or "no field" in refused.message:
            return
        raise
    found = values(after)
    place = found[number]
    for step in path:
        place = place[step]
    assert json.dumps(place, sort_keys=True) == json.dumps(value, sort_keys=True)
    assert [one for index, one in enumerate(found) if index != number] == [
        one for index, one in enumerate(before) if index != number
    ]


@settings(max_examples=60, deadline=None)
@given(st.data(), texts())
def test_a_removal_removes_that_only(data, text):
    """The other fields and items are what they were."""
    before = values(text)
    number = data.draw(st.integers(0, len(before) - 1))
    path = data.draw(st.sampled_from(list(paths(before[number]))))
    parent = before[number]
    for step in path[:-1]:
        parent = parent[step]
    try:
        after = remove(text, number, path)
    except EditRefused as refused:
        there = isinstance(path[-1], int) and path[-1] < len(parent)
        there = there or (isinstance(parent, dict) and path[-1] in parent)
        if not there or "the document would be empty" in refused.message:
            return
        raise
    del parent[path[-1]]
    assert values(after) == before


def test_a_file_is_replaced_at_once(tmp_path):
    """Its permissions stay, a link to it stays one, and nothing is left beside it."""
    file, link = tmp_path / "a.yaml", tmp_path / "b.yaml"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to("a.yaml")
    replace_file(link, b"old", b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "b.yaml"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path):
    """An editor saved it between reading and writing: its version stays."""
    file = tmp_path / "a.yaml"
    file.write_bytes(b"newer")
    with pytest.raises(FileChanged):
        replace_file(file, b"old", b"new")
    assert file.read_bytes() == b"newer"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\r"])
def test_lines_that_end_oddly_are_refused(odd):
    """YAML and editors would count other lines, and an edit would stand in the wrong one."""
    with pytest.raises(EditRefused, match=f"line 2 contains U.{ord(odd):04X}"):
        set_value(f"a: 1\nb: 2 # x{odd}# y\n", 0, ("a",), 2)

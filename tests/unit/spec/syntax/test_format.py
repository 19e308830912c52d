from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.format import format_bytes, format_text
from fleetform.spec.syntax.layout import EditRefused, read_layout
from fleetform.spec.tree.format import format_files
from unit.spec.texts import VALUES, texts
from unit.spec.trees import ENVIRONMENT, write

REPOSITORY = Path(__file__).parents[4]
DATA = REPOSITORY / "tests" / "data"
ENVIRONMENTS = REPOSITORY / "environments"

CASES = {
    "fields stand in one order": (
        "resources: {gpu: 1}\nname: train\ncommands: [a]\ntype: task\n",
        "type: task\nname: train\ncommands: [a]\nresources: {gpu: 1}\n",
    ),
    "parts of a field too": (
        "type: task\nretry:\n  delay: 1s\n  on: [error]\nvolumes:\n- path: /x\n  name: data\n",
        "type: task\nvolumes:\n  - name: data\n    path: /x\nretry:\n  on: [error]\n  delay: 1s\n",
    ),
    "a shorter spelling of a field is put in order too": (
        "type: task\ndepends_on:\n- when: finished\n  run: one\n",
        "type: task\ndepends_on:\n  - run: one\n    when: finished\n",
    ),
    "names of the user's own are not sorted": (
        "type: task\nenv:\n  Z: 1\n  A: 2\ntags: {b: 1, a: 2}\n",
        "type: task\ntags: {b: 1, a: 2}\nenv:\n  Z: 1\n  A: 2\n",
    ),
    "a field that is none stays behind its neighbour": (
        "type: task\nresources:\n  memory: 1GB\n  memroy: 2GB\n  cpu: 1\n",
        "type: task\nresources:\n  cpu: 1\n  memory: 1GB\n  memroy: 2GB\n",
    ),
    "a comment moves with what it describes": (
        "type: task\n# how\ncommands: [a]  # all\n# who\nname: train # me\n",
        "type: task\n# who\nname: train # me\n# how\ncommands: [a]  # all\n",
    ),
    "what is about the document stays at its top": (
        "# about\n\n# yaml-language-server: $schema=x\nname: a1\n\ntype: task\n",
        "# about\n\n# yaml-language-server: $schema=x\n\ntype: task\nname: a1\n",
    ),
    "what is indented as a block stays at its end": (
        "type: task\nresources:\n    cpu: 1\n    # gpu: 1\n# then\nname: a1\n# end\n",
        "type: task\n# then\nname: a1\nresources:\n  cpu: 1\n  # gpu: 1\n# end\n",
    ),
    "one blank line stays between groups": (
        "\n\ntype: task\n\n\n\n# c\n\n\nname: a1\nenv:\n\n  - A=1\n\n\n  - B=1\n\n\n",
        "type: task\n\n# c\n\nname: a1\nenv:\n  - A=1\n\n  - B=1\n",
    ),
    "double quotes, where they say the same": (
        "type: task\ntags: {a: 'b', \"c\": 'd\"e', f: 'g''h', i: '\\'}\n",
        'type: task\ntags: {a: "b", "c": \'d"e\', f: "g\'h", i: \'\\\'}\n',
    ),
    "text of several lines keeps them": (
        "type: task\ncommands:\n- |-  # why\n      a\n        b\n\n      c\n- one\n      two\n- >\n  x\n",
        "type: task\ncommands:\n  - |-  # why\n    a\n      b\n\n    c\n  - one\n    two\n  - >\n    x\n",
    ),
    "brackets over several lines keep them": (
        "type: task\nresources:\n    gpu: {\n      count: 1,  # one\n    }\n",
        "type: task\nresources:\n  gpu: {\n    count: 1,  # one\n  }\n",
    ),
    "a value goes to its key, and comments between them above it": (
        "type: task\nname:  # c\n  # d\n  train\n",
        "type: task\n# c\n# d\nname: train\n",
    ),
    "anchors stay before their aliases": (
        "type: task\nname: &n train\ndescription: *n\n",
        "type: task\nname: &n train\ndescription: *n\n",
    ),
    "a document whose order matters to its anchors keeps it": (
        "description: &n train\nname: *n\ntype:   task\n",
        "description: &n train\nname: *n\ntype: task\n",
    ),
    "every document of a file, and what is not ours as it is": (
        "--- # one\nname: a1\ntype: task\n\n\n---\nx:   1\n...\n# end\n---\nname: a2\ntype: task\n...\n",
        "--- # one\ntype: task\nname: a1\n\n---\nx:   1\n...\n# end\n---\ntype: task\nname: a2\n...\n",
    ),
    "a text that says its own indentation": (
        "type: task\ncommands:\n- |1+ # c\n   a\n  b\n\n- k:  >2-\n      a\n",
        "type: task\ncommands:\n  - |2+ # c\n      a\n     b\n\n  - k: >2-\n        a\n",
    ),
    "a text that ends without a newline goes on doing so": (
        "type: task\ncommands: [a]\nname: a1\ndescription: |+ # c\n    a\n    b",
        "type: task\nname: a1\ndescription: |- # c\n  a\n  b\ncommands: [a]\n",
    ),
    "a comment stays with what it stands behind, with an anchor too": (
        "type: task\nx: &a\n    k: 1 # c\ny: &b # d\n- k # e\n- &d # f\n  l: 1 # g\n",
        "type: task\nx: &a\n  k: 1 # c\ny: &b # d\n  - k # e\n  - &d # f\n    l: 1 # g\n",
    ),
    "a comment between an anchor and its value goes above both": (
        "type: task\nx: &a\n    # c\n    k: 1\ny: !!str # d\n  l\nenv: !!map # e\n  &b\n  # f\n  z: 1\n",
        "type: task\n# c\nx: &a\n  k: 1\n# d\ny: !!str l\n# e\n# f\nenv: !!map &b\n  z: 1\n",
    ),
    "surroundings before what happens there": (
        "type: task\ncommands: [a]\nfleets: a1\nenv: {A: 1}\npython: 3.12\nnodes: 2\n",
        "type: task\nnodes: 2\npython: 3.12\nenv: {A: 1}\ncommands: [a]\nfleets: a1\n",
    ),
    "a part's own fields before those it shares": (
        "type: fleet\nssh_config:\n  hosts:\n    - tags: {a: b}\n      hostname: h\n",
        "type: fleet\nssh_config:\n  hosts:\n    - hostname: h\n      tags: {a: b}\n",
    ),
    "an environment's document": (
        "uid: 0b2f6a0e-54c5\ntype: environment\nname: a1\n",
        "type: environment\nname: a1\nuid: 0b2f6a0e-54c5\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_there_is_one_way_to_write_it(case, newline):
    """And what is written that way is left as it is, with its own line ends."""
    before, after = (text.replace("\n", newline) for text in CASES[case])
    assert format_text(before) == after
    assert format_text(after) == after


def test_a_file_ends_with_a_newline():
    """Where lines end with anything, they end as elsewhere."""
    assert format_text("type: task") == "type: task\n"


@pytest.mark.parametrize(
    "text",
    ["x:   1\n", "- type: task\n", "type:   nothing\n", "{type: task, name:   a1}\n", "# c\n", ""],
)
def test_what_is_not_ours_is_left_alone(text):
    """YAML of others, and documents that are not written as a block."""
    assert format_text(text) == text


@pytest.mark.parametrize(
    "text",
    ["type: task\nname: [\n", "type: task\ntype:  task\n", "a: \x00\n", "type: task\n\tname: x\n"],
)
def test_what_cannot_be_read_is_left_alone_with_the_reason(text):
    """A broken file is not made worse."""
    formatted = format_bytes(text.encode(), "x.yaml")
    assert formatted.data == text.encode()
    assert [finding.place.file for finding in formatted.findings] == ["x.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        "type:   task\r# a\n",
        f"type:   task\n? {'x' * 2000}\n: 1\n",
    ],
)
def test_what_is_better_left_alone_says_so(text):
    """It is no error, and the file stays as it is."""
    with pytest.raises(EditRefused):
        format_text(text)


TYPES = st.sampled_from([*KINDS, "environment"])
NAMES = [*KINDS["task"].model.model_fields, "on_events", "a b"]
FIELDS = {
    "retry": st.dictionaries(st.sampled_from(["delay", "on", "max_attempts", "duration"]), VALUES, max_size=4),
    "volumes": st.lists(
        st.dictionaries(st.sampled_from(["path", "name", "x"]), VALUES, min_size=1, max_size=3), max_size=3
    ),
    "resources": st.dictionaries(st.sampled_from(["gpu", "cpu", "memory", "x"]), VALUES, max_size=4),
}  # fmt: skip


@st.composite
def documents(draw):
    names = draw(st.lists(st.sampled_from(NAMES), max_size=6, unique=True))
    document = {name: draw(FIELDS.get(name, VALUES)) for name in names}
    document["type"] = draw(TYPES)
    return dict(draw(st.permutations(list(document.items()))))


def meaning(text):
    nodes, findings = read_documents(text.encode(), "")
    assert findings == []
    return [json.dumps(plain(node), sort_keys=True) for node in nodes]


def comments(text):
    return Counter(comment.text for comment in read_layout(text).comments)


@settings(max_examples=150, deadline=None)
@given(texts(documents()))
def test_formatting_changes_no_meaning_loses_no_comment_and_rests(text):
    """Whatever the document, however it was written; a second time does nothing."""
    try:
        formatted = format_text(text)
    except EditRefused:
        return
    assert meaning(formatted) == meaning(text)
    assert comments(formatted) == comments(text)
    assert format_text(formatted) == formatted


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab:-#&*!|>'\"%@{}[], \n\t"), max_size=40), st.booleans())
def test_any_text_is_formatted_or_left_alone(text, has_type):
    """Nothing is raised but a refusal, and what comes out is read like what went in."""
    before = f"type: task\n{text}" if has_type else text
    data = before.encode()
    formatted = format_bytes(data, "x.yaml")
    if formatted.data != data:
        assert meaning(formatted.data.decode()) == meaning(before)


@pytest.mark.parametrize(
    "file",
    sorted([*DATA.joinpath("kinds").glob("*.yaml"), *ENVIRONMENTS.rglob("*.yaml")]),
    ids=lambda path: "/".join(path.parts[-3:]),
)
def test_our_own_documents_are_in_order(file):
    """What people copy from is written as they would find theirs written."""
    text = file.read_text(encoding="utf-8")
    assert format_text(text) == text


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/*.md"))], ids=lambda p: p.name
)
def test_documents_in_our_pages_are_in_order(page):
    """What people copy from there too."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        assert format_text(block) == block


@pytest.mark.parametrize(
    "file", sorted(DATA.joinpath("seeds").glob("*.yaml")), ids=lambda p: p.name
)
def test_documents_of_others_are_formatted_without_loss(file):
    """Written by people who know nothing of us: meaning and comments are the same, and it rests."""
    text = file.read_text(encoding="utf-8")
    formatted = format_text(text)
    assert meaning(formatted) == meaning(text)
    assert comments(formatted) == comments(text)
    assert format_text(formatted) == formatted


def test_a_tree_is_formatted_but_for_what_runs_carry_along(tmp_path):
    """A named file is data even where it declares something; a folder is where nothing does."""
    write(tmp_path, "environment.yaml", ENVIRONMENT)
    write(
        tmp_path,
        "runs/train.yaml",
        "files: [carried.yaml, './conf:c', {local_path: .}]\ntype: task\n",
    )
    write(tmp_path, "runs/carried.yaml", "name: a1\ntype: task\n")
    write(tmp_path, "runs/conf/x.yaml", "name: a1\ntype: other\n")
    write(tmp_path, "runs/other.yaml", "name: a1\ntype: task\n")
    (tmp_path / "runs/link.yaml").symlink_to("other.yaml")
    (tmp_path / "out.yaml").symlink_to("/etc/hosts")
    found = {file.path: file.formatted.data != file.before for file in format_files(tmp_path)}
    assert found == {
        "environment.yaml": False,
        "out.yaml": False,
        "runs/other.yaml": True,
        "runs/train.yaml": True,
    }

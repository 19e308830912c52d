from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.lsp.references import index_file
from fleetform.lsp.text import Text

TASK = "type: task\nname: train\n"


def said(source):
    """Each name with its kind, as its place in the text has it."""
    text = Text(source)
    read = index_file(text, "x.yaml")
    return [(one.key.kind, one.key.name, text.slice(one.extent)) for one in read.mentions]


@pytest.mark.parametrize(
    "field",
    [
        "volumes: data:/mnt",
        'volumes: ["data:/mnt"]',
        "volumes:\n  - 'data:/mnt'\n",
        "volumes: {name: data, path: /mnt}",
        "volumes:\n  - name: data\n    path: /mnt\n",
        "volumes: [{name: [data], path: /mnt}]",
    ],
)
def test_a_mount_names_its_volume_in_each_spelling(field):
    """The place is the name alone: neither quotes nor the path."""
    assert said(TASK + field)[1:] == [("volume", "data", "data")]


@pytest.mark.parametrize(
    "field",
    [
        "depends_on: prepare",
        "depends_on: [prepare]",
        "depends_on: {run: prepare, when: finished}",
        "depends_on:\n  - run: prepare\n",
        "depends_on: {when: any, runs: ['prepare[lr=0.1]']}",
        'depends_on: "prepare[lr=0.1,note=\\"a\\"]"',
    ],
)
def test_a_dependency_names_its_run_in_each_spelling(field):
    """Of an element its document's name."""
    assert said(TASK + field)[1:] == [("run", "prepare", "prepare")]


@pytest.mark.parametrize(
    "field", ["volumes: /host:/mnt", "volumes: 3", "depends_on: {}", "fleets:"]
)
def test_what_names_nothing_is_no_mention(field):
    """A directory of the host, a number, an empty field."""
    assert said(TASK + field)[1:] == []


def test_a_secret_is_found_in_a_block_of_commands():
    """Its place is the key in the expression, wherever the text's lines are."""
    source = f"{TASK}commands:\n  - |\n    echo 😀\n    login ${{{{ secrets.token }}}}  $${{{{ secrets.no }}}}\n"
    assert said(source)[1:] == [("secret", "token", "token")]


def test_entries_of_a_list_file_are_documents():
    """dstack's profiles have no `type`, and are declared all the same."""
    read = index_file(Text("profiles:\n  - name: large\n  - name: small\n"), "profiles.yml")
    assert [one.key.name for one in read.declarations] in ([], ["large", "small"])


def test_documents_around_a_broken_one_are_read():
    """The file says that something is missing, and what is not."""
    read = index_file(Text(f"{TASK}---\ntype: fleet\nname: lo\nlocal: [\n---\n{TASK}"), "x.yaml")
    assert not read.is_sound
    assert [one.key.name for one in read.declarations] == ["train", "lo", "train"]


def test_a_name_spelled_with_an_escape_is_not_exact():
    """One can go there, and nothing is replaced by guess."""
    read = index_file(Text('type: task\nname: "tr\\x61in"\n'), "x.yaml")
    assert [(one.key.name, one.is_exact) for one in read.mentions] == [("train", False)]


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_text_is_indexed(source):
    """No text raises, and no place lies outside of it."""
    read = index_file(Text(source), "x.yaml")
    assert all(0 <= one.extent.start <= one.extent.end <= len(source) for one in read.mentions)

"""Trees on disk to what they declare."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Finding, Level, render_findings
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.cache import ReadingCache
from fleetform.spec.tree.walk import read_file
from unit.spec.trees import codes, good, load, write

MISTAKES = Path(__file__).parents[2] / "data" / "mistakes"

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


def test_cache_spares_reading(tmp_path, monkeypatch):
    """What a document names is remembered by how it looks, once it has settled."""
    write(tmp_path, "data.bin", "one")
    load(tmp_path, f"{TASK}files: [./data.bin]\n")
    for settled_ns, remembered in ((10**18, 0), (-(10**18), 1)):
        monkeypatch.setattr("fleetform.spec.tree.files.SETTLED_NS", settled_ns)
        cache = ReadingCache()
        load_tree(tmp_path, cache=cache)
        assert len(cache.digests) == remembered


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


@pytest.mark.parametrize(
    "fields",
    [
        "image: '${{ secrets.x }}'",
        "image: 'lab/${{ secrets.x }}:1'",
        "image: ubuntu\nregistry_auth: '${{ secrets.x }}'",
        "image: ubuntu\nregistry_auth: {username: u, password: '${{ secrets.x }}'}",
        "user: '${{ secrets.x }}'",
        "env: {TOKEN: '${{ secrets.x }}'}",
        "env: [IMAGE]\nimage: '${{ env.IMAGE }}'",
        "env: [RANK]\npriority: '${{ env.RANK }}'",
        "nodes: '${{ run.args }}'",
        "resources: {gpu: '${{ secrets.x }}'}",
        "fleets: ['${{ secrets.x }}']",
    ],
)
def test_the_form_of_a_value_that_is_known_later_is_not_judged(tmp_path, fields):
    """A field with a secret, an argument or a variable without value loads, and blocks its run."""
    text = f"type: task\nname: train\ncommands: [x]\n{fields}\n---\ntype: secret\nname: x\nenv: X\n"
    assert run("train") in good(tmp_path, text).beyond


def test_a_value_that_is_written_out_is_judged(tmp_path):
    """An escaped expression is text, and an address that no host will have is a mistake."""
    for value in ("$${{ secrets.x }}", "${{ groups[3].nodes[0].IP_ADDRESS }}"):
        text = f"type: task\nname: train\ncommands: [x]\nimage: '{value}'\n"
        assert load(tmp_path, text).errors != (), value


NUMBERS = {
    "1e3": "1000.0",
    "0x10": "16",
    "0o17": "15",
    "010": "10",
    "+5": "5",
    "1.50": "1.5",
    ".5": "0.5",
    "1e-4": "0.0001",
}


@pytest.mark.parametrize(("raw", "text"), NUMBERS.items())
def test_a_number_that_a_job_sees_in_another_spelling_is_told(tmp_path, raw, text):
    """The one warning about it names both spellings, and quotes keep what is written."""
    task = f"{TASK}env: {{A: {raw}, B: {text}, C: '{raw}', D: 1_000}}\n"
    loaded = load(tmp_path, task)
    (found,) = loaded.findings
    assert (found.level, found.code) == (Level.WARNING, "number-rewritten")
    assert (found.place.line, found.place.column) == (4, 10)
    assert f"is the number `{raw}`; the job will see the text `{text}`." in found.detail
    assert f'Write `A: "{raw}"`' in found.advice
    assert loaded.desired.resources[run("train")].document["env"]["A"] == text


def test_a_rewritten_number_of_a_profile_is_told_once(tmp_path):
    """Each run that has the profile reads it; a secret is not printed."""
    profile = "type: profile\nname: slow\nenv: {LR: 1e3, API_TOKEN: 0x10}\n"
    runs = [f"type: task\nname: {name}\nprofile: slow\ncommands: [x]\n" for name in ("one", "two")]
    loaded = load(tmp_path, "---\n".join([profile, *runs]))
    assert codes(loaded).count("number-rewritten") == 2
    said = "".join(f"{one.detail}{one.advice}{one.text}" for one in loaded.findings)
    assert "0x10" not in said

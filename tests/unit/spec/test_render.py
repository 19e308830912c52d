"""What is rendered says where it is from, and declares the same again."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.spec.nodes import plain
from fleetform.spec.render import Origins, document_lines, render_tree
from fleetform.spec.syntax import read_documents
from fleetform.spec.tree import load_tree
from unit.spec.overlay.environments import FLEET, environment, extending, good, load, write
from unit.spec.overlay.nodes import from_value

BASE = {
    "base__environment": "type: environment\nname: base\nabstract: true\nvalues: {size: 2, say: hi}\n",
    "base__fleet": FLEET,
    "base__train": "type: task\nname: train\nprofile: some\nnodes: ${{ values.size }}\n"
    "commands:\n  - 'echo ${{ values.say }} ${{ run.name }} $${{ left }}'\n  - |\n    one\n    two\n"
    "env: ['TOKEN=${{ secrets.token }}', 'SAY=${{ values.say }}']\n",
    "base__secret": "type: secret\nname: token\nenv: TOKEN\n",
}
STAGING = {
    "staging__environment": extending(
        "values: {say: ho}\npatches:\n  - {target: run/train, merge: {priority: 3}}\n"
    ),
    "staging__profiles": "type: profile\nname: some\nmax_duration: 1h\n",
    "staging__runs__sweep": "type: task\nname: sweep\nmatrix: {lr: [0.1, 0.01]}\n"
    "commands: ['run ${{ matrix.lr }}']\nfiles: [./run.py, conf:etc]\n",
    "staging__runs__run.py": "x",
    "staging__runs__conf__a.ini": "x",
}

TRAIN = """\
# ../base/train.yaml:1
type: task  # ../base/train.yaml:1
name: train  # ../base/train.yaml:2
nodes: 2  # ../base/train.yaml:4, values.size
commands:
  - echo ho ${{ run.name }} $${{ left }}  # ../base/train.yaml:6, values.say
  - |  # ../base/train.yaml:7
    one
    two
env:
  - TOKEN=${{ secrets.token }}  # ../base/train.yaml:10
  - SAY=ho  # ../base/train.yaml:10, values.say
priority: 3  # environment.yaml:7 patch
max_duration: 1h  # profiles.yaml:3 profile
"""


def test_each_value_says_where_it_is_written(tmp_path):
    """A base's, a patch's, a profile's, one that was filled in; and what is its own nothing."""
    rendered = render_tree(write(tmp_path, **BASE, **STAGING) / "staging", ["train"])
    (train,) = rendered.documents
    assert train.yaml() == TRAIN
    (sweep,) = render_tree(tmp_path / "staging", ["run/sweep"]).documents
    assert sweep.yaml().splitlines() == [
        "# runs/sweep.yaml:1", "type: task", "name: sweep", "matrix:", "  lr:", "    - 0.1",
        "    - 0.01", "commands:", "  - run ${{ matrix.lr }}", "files:", "  - runs/run.py:run.py",
        "  - runs/conf:etc",
    ]  # fmt: skip


def test_origins_as_they_are_wanted(tmp_path):
    """Of none, and of all values."""
    root = write(tmp_path, **BASE, **STAGING) / "staging"
    (bare,) = render_tree(root, ["sweep"], origins=Origins.NONE).documents
    assert "#" not in bare.yaml()
    (whole,) = render_tree(root, ["sweep"], origins=Origins.ALL).documents
    assert "    - 0.01  # runs/sweep.yaml:3" in whole.yaml().splitlines()


def test_json_has_origins_by_pointer(tmp_path):
    """For scripts that ask where a value is from."""
    (train,) = render_tree(write(tmp_path, **BASE, **STAGING) / "staging", ["train"]).documents
    value = train.json()
    assert (value["file"], value["line"]) == ("../base/train.yaml", 1)
    assert value["document"]["nodes"] == 2
    assert value["origins"]["/priority"] == "environment.yaml:7 patch"
    assert value["origins"]["/commands/0"] == "../base/train.yaml:6, values.say"


@pytest.mark.parametrize("origins", list(Origins))
def test_what_is_rendered_declares_the_same(tmp_path, origins):
    """In a tree with nothing but a name and a uid; comments change nothing."""
    desired = good(tmp_path, **BASE, **STAGING)
    rendered = render_tree(tmp_path / "staging", origins=origins)
    text = "---\n".join(one.yaml() for one in rendered.documents)
    (tmp_path / "staging/runs/sweep.yaml").unlink()
    (tmp_path / "staging/profiles.yaml").unlink()
    again = good(tmp_path, staging__environment=environment(), staging__rendered=text)
    for before, after in ((desired.resources, again.resources),):
        assert {key: one.digest for key, one in before.items()} == {
            key: one.digest for key, one in after.items()
        }
    assert {key: one.declared.digest for key, one in desired.beyond.items()} == {
        key: one.declared.digest for key, one in again.beyond.items()
    }


def test_profiles_are_parts_of_runs_by_now(tmp_path):
    """Printed as documents they would be merged a second time."""
    rendered = render_tree(write(tmp_path, **BASE, **STAGING) / "staging")
    assert rendered.names == ("fleet/local", "run/sweep", "run/train", "secret/token")


def test_a_base_can_be_looked_at_by_itself(tmp_path):
    """As it is, for whoever writes patches."""
    write(tmp_path, base__environment=BASE["base__environment"], base__fleet=FLEET)
    (fleet,) = render_tree(tmp_path / "base").documents
    assert fleet.yaml() == f"# fleet.yaml:1\n{FLEET}"


def test_what_has_an_error_is_not_rendered(tmp_path):
    """Half of an environment is none."""
    write(tmp_path, **BASE, staging__environment=extending(), staging__broken="type: task\n")
    rendered = render_tree(tmp_path / "staging")
    assert rendered.documents == ()
    assert rendered.loaded.errors == load_tree(tmp_path / "staging").errors != ()


def test_files_that_runs_carry_along_are_no_documents(tmp_path):
    """YAML of a program is left out as it is in a plan."""
    loaded = load(
        tmp_path, staging__environment=environment(), staging__fleet=FLEET,
        staging__train="type: task\nname: train\ncommands: [a]\nfiles: [conf]\n",
        staging__conf__a="x: 1\n",
    )  # fmt: skip
    assert loaded.errors == ()
    assert render_tree(tmp_path / "staging").names == ("fleet/local", "run/train")


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["yes", "017", "1e3", "a: b", "a #b", "- x", "|", "", " ", "x\n", "x\n\n", "\nx", "a\tb", "~"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES, st.sampled_from(["", "x.yaml:3 patch"]))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_value_reads_back(value, said):
    """Whatever its texts are, with a comment behind them and without."""
    text = "\n".join(document_lines(from_value(value), lambda _: said)) + "\n"
    read, findings = read_documents(text.encode("utf-8", "surrogatepass"), "x.yaml")
    assert findings == []
    assert [plain(one) for one in read] == [value]

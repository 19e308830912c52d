"""A tree as it was, or with other values in a few documents: the same as loading it anew."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fleetform.spec.tree import cache_file, cache_format, load_tree, read_environment
from fleetform.spec.tree.cache import ReadingCache
from fleetform.spec.tree.cache_file import open_cache, save_cache
from fleetform.spec.tree.load import Loader
from unit.spec.trees import ENVIRONMENT, spelled, write

FLEET = "type: fleet\nname: local\nlocal: {cpu: 4}\nnodes: 2\n"
VOLUME = "type: volume\nname: data\nfleet: local\npath: data\n"
KEPT = "type: volume\nname: kept\nfleet: local\npath: kept\n"
VERY = "type: volume\nname: very-deep\nfleet: local\npath: very/deep\n"
SWEEP = (
    "type: task\nname: sweep\nmatrix: {lr: [1, 2]}\ncommands: ['echo ${{ matrix.lr }}']\n"
    "fleets: [local]\n"
)
TASK = (
    "type: task\nname: train\ncommands: [python train.py]\nfleets: [local]\nvolumes: ['data:/d']\n"
)
AFTER = "type: task\nname: after\ncommands: [echo]\ndepends_on: [sweep, train]\n"


@pytest.fixture
def settled(monkeypatch):
    """Files of this test count as settled at once, as they would two seconds later."""
    monkeypatch.setattr("fleetform.spec.tree.cache.SETTLED_NS", -(10**18))


@pytest.fixture
def root(tmp_path):
    """A small tree of several files, one with several documents."""
    root = tmp_path / "tree"
    write(root, "environment.yaml", ENVIRONMENT)
    write(root, "fleet.yaml", FLEET)
    write(root, "data.yaml", VOLUME)
    write(root, "kept.yaml", f"{KEPT}---\n{VERY}")
    write(root, "runs.yaml", f"{SWEEP}---\n{TASK}---\n{AFTER}")
    return root


def through_disk(root: Path, folder: Path):
    """Load as a command does: with what the last one wrote."""
    cache = open_cache(folder, root)
    loaded = load_tree(root, cache=cache)
    save_cache(cache, folder, root)
    return loaded


def whole_loads(monkeypatch):
    """Count the loads that went through all passes from now on."""
    counted = []
    load = Loader.load

    def counting(self):
        counted.append(self)
        return load(self)

    monkeypatch.setattr(Loader, "load", counting)
    return counted


def test_what_did_not_change_is_not_compared_again(root, tmp_path, settled, monkeypatch):
    """The second load of a tree runs none of the passes, and comes to the same."""
    first = through_disk(root, tmp_path / "cache")
    counted = whole_loads(monkeypatch)
    again = through_disk(root, tmp_path / "cache")
    assert counted == []
    assert again == first
    assert spelled(again) == spelled(first)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("python train.py", "python train.py --lr 2"),
        ("python train.py]\n", "python train.py]\npriority: 7\n"),
        ("[local]\nvolumes", "[local]\nenv: {A: b}\nvolumes"),
        ("path: data\n", "path: data\ndescription: what it was made from\n"),
        ("path: data\n", "path: data\nprotect: true\n"),
        ("path: data\n", "path: other\n"),
        ("path: data\n", "path: database/first\n"),
        ("path: data\n", "path: /data/first\n"),
    ],
)
def test_another_value_takes_its_document_alone(
    before, after, root, tmp_path, settled, monkeypatch
):
    """A field that no other document sees changes its own resource and nothing else."""
    old = through_disk(root, tmp_path / "cache")
    for file in ("data.yaml", "runs.yaml"):
        text = (root / file).read_text()
        write(root, file, text.replace(before, after))
    fresh = load_tree(root)
    counted = whole_loads(monkeypatch)
    for _ in range(2):
        loaded = through_disk(root, tmp_path / "cache")
        assert loaded == fresh
        assert spelled(loaded) == spelled(fresh)
    assert counted == []
    assert loaded.desired.digest != old.desired.digest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: train", "name: trial"),
        ("lr: [1, 2]", "lr: [1, 2, 3]"),
        ("path: data\n", "path: kept\n"),
        ("path: data\n", "path: kept/data\n"),
        ("path: data\n", "path: very\n"),
        ("path: data\n", "path: .\n"),
        ("path: data\n", "path: with|mark\n"),
        ("[local]\nvolumes", "[elsewhere]\nvolumes"),
        ("'data:/d'", "'dada:/d'"),
        ("depends_on: [sweep", "depends_on: [after"),
        ("python train.py", "python ${{ secrets.nobody }}"),
        ("commands: [echo]", "comands: [echo]"),
        ("nodes: 2", "nodes: 3"),
        ("uid: 0b2f6a0e", "uid: 1b2f6a0e"),
    ],
)
def test_what_others_see_is_compared(before, after, root, tmp_path, settled, monkeypatch):
    """Names, references, elements, mistakes, and the environment are the whole tree's matter."""
    through_disk(root, tmp_path / "cache")
    for file in root.glob("*.yaml"):
        file.write_text(file.read_text().replace(before, after))
    fresh = load_tree(root)
    counted = whole_loads(monkeypatch)
    assert through_disk(root, tmp_path / "cache") == fresh
    assert len(counted) == 1


def test_a_file_that_a_run_names_is_looked_at(root, tmp_path, settled):
    """A script that has changed is another run, although no document says so."""
    write(root, "train.py", "print(1)\n")
    write(root, "runs.yaml", TASK + "files: [./train.py]\n")
    for text in ("print(1)\n", "print(2)\n", "print(2)\n", "print(1)\n"):
        write(root, "train.py", text)
        loaded = through_disk(root, tmp_path / "cache")
        assert loaded == load_tree(root)
        assert loaded.desired.contents


def test_a_link_to_data_costs_no_load_and_is_told_while_it_is_there(
    root, tmp_path, settled, monkeypatch
):
    """It stands in many trees; when it comes and when it goes, the tree is loaded as a whole."""
    through_disk(root, tmp_path / "cache")
    (root / "data").symlink_to("/")
    noted = through_disk(root, tmp_path / "cache")
    assert [one.code for one in noted.findings] == ["file-outside"]
    counted = whole_loads(monkeypatch)
    assert through_disk(root, tmp_path / "cache") == noted
    assert counted == []
    (root / "data").unlink()
    assert through_disk(root, tmp_path / "cache").findings == ()


def test_bases_and_patches_are_recalled(root, tmp_path, settled, monkeypatch):
    """What an overlay has made of documents is kept as it came out."""
    write(tmp_path, "base/base.yaml", TASK.replace("train", "inherited"))
    patch = "patches: [{target: 'run/*', merge: {priority: 9}}]\n"
    write(root, "environment.yaml", f"{ENVIRONMENT}extends: ../base\n{patch}")
    first = through_disk(root, tmp_path / "cache")
    counted = whole_loads(monkeypatch)
    assert through_disk(root, tmp_path / "cache") == first
    assert counted == []
    write(tmp_path, "base/base.yaml", TASK.replace("train", "inherited") + "env: {A: b}\n")
    monkeypatch.undo()
    assert through_disk(root, tmp_path / "cache") == load_tree(root)


def test_an_older_load_stays_as_it_was(root, settled):
    """Whoever holds the result of one load sees nothing of the next one's."""
    write(root, "environment.yaml", f"{ENVIRONMENT}values: {{x: 1}}\n")
    write(root, "runs.yaml", TASK.replace("python train.py", "'echo ${{ values.x }}'"))
    cache = ReadingCache()
    load_tree(root, cache=cache)
    held = load_tree(root, cache=cache)
    write(root, "environment.yaml", f"{ENVIRONMENT}values: {{x: 2}}\n")
    for _ in range(2):
        assert load_tree(root, cache=cache) == load_tree(root)
    (run,) = [one for key, one in held.desired.resources.items() if key.kind == "run"]
    assert run.document["commands"] == ["echo 1"]


def test_the_environment_is_kept_while_its_file_says_so(root, tmp_path, settled):
    """Whose a tree is can be told without YAML, and is what YAML would say."""
    rules = "rules: {allow_destroy: true, delete_percent: 20}\n"
    for text in (ENVIRONMENT, ENVIRONMENT + rules, f"{ENVIRONMENT}values: {{x: 1}}\n{rules}"):
        write(root, "environment.yaml", text)
        assert cache_format.kept_environment(tmp_path / "cache", root) is None
        through_disk(root, tmp_path / "cache")
        kept = cache_format.kept_environment(tmp_path / "cache", root)
        assert kept is not None
        assert kept == read_environment(root)[0]
    (file,) = (tmp_path / "cache").iterdir()
    file.chmod(0o666)
    assert cache_format.kept_environment(tmp_path / "cache", root) is None


def test_rules_of_a_base_are_not_its_own(root, tmp_path, settled):
    """What `environment.yaml` inherits is no part of what it says itself."""
    base = "type: environment\nname: base\nabstract: true\nrules: {allow_destroy: true}\n"
    write(tmp_path, "base/environment.yaml", base)
    write(root, "environment.yaml", f"{ENVIRONMENT}extends: ../base\n")
    loaded = through_disk(root, tmp_path / "cache")
    assert loaded.errors == ()
    assert loaded.desired.environment.rules.allow_destroy
    kept = cache_format.kept_environment(tmp_path / "cache", root)
    assert kept == read_environment(root)[0]
    assert not kept.rules.allow_destroy


def test_a_value_that_is_none_of_json_is_no_matter(root, tmp_path, settled, monkeypatch):
    """What cannot be written is not kept, and the tree is read the longer way."""

    def refuse(_):
        raise TypeError("no value that is kept")

    monkeypatch.setattr(cache_file, "encode_whole", refuse)
    first = through_disk(root, tmp_path / "cache")
    counted = whole_loads(monkeypatch)
    assert through_disk(root, tmp_path / "cache") == first
    assert len(counted) == 1


VALUES = st.sampled_from(
    [
        ("runs.yaml", "commands", ["echo 1", "echo ${{ values.x }}", "sleep 1"]),
        ("runs.yaml", "priority", ["1", "200", "none"]),
        ("runs.yaml", "resources", ["{cpu: 1}", "{cpu: 64}", "{memory: 1GB..}"]),
        ("runs.yaml", "max_duration", ["1h", "off"]),
        ("runs.yaml", "volumes", ["['data:/d']", "['other:/d']", "[]"]),
        ("runs.yaml", "depends_on", ["[sweep]", "[{run: sweep, each: true}]", "[nobody]"]),
        ("runs.yaml", "files", ["[./one.py]", "[./two.py]", "[.]"]),
        ("runs.yaml", "tags", ["{a: b}", "[x]"]),
        ("runs.yaml", "profile", ["quick"]),
        ("data.yaml", "path", ["data", "elsewhere", "../out"]),
        ("data.yaml", "description", ["one", "two"]),
        ("data.yaml", "protect", ["true", "false"]),
        ("fleet.yaml", "nodes", ["1", "1..4"]),
    ]
)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("value"), VALUES, st.integers(0, 2)),
        st.tuples(st.just("script"), st.sampled_from(["one.py", "two.py"]), st.integers(0, 2)),
        st.tuples(st.just("blank"), st.sampled_from(["runs.yaml", "data.yaml"]), st.just(0)),
        st.tuples(st.just("values"), st.none(), st.integers(0, 2)),
    ),
    min_size=1,
    max_size=10,
)


def apply_edit(root: Path, edit) -> None:
    what, where, number = edit
    if what == "value":
        file, field, texts = where
        lines = (root / file).read_text().splitlines()
        # Of the last document, so that others stand in front of it.
        kept = [line for line in lines if not line.startswith(f"{field}:")]
        text = f"{field}: {texts[number % len(texts)]}"
        write(root, file, "\n".join([*kept, text]) + "\n")
    elif what == "script":
        write(root, where, f"print({number})\n")
    elif what == "blank":
        write(root, where, "\n" + (root / where).read_text())
    else:
        write(root, "environment.yaml", f"{ENVIRONMENT}values: {{x: {number}}}\n")


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(edits=EDITS)
def test_values_that_change_come_to_the_same(settled, edits):
    """After any edits of values, a tree loads as without a cache, from disk and from memory."""
    with tempfile.TemporaryDirectory() as name:
        root, folder = Path(name) / "tree", Path(name) / "cache"
        write(root, "environment.yaml", f"{ENVIRONMENT}values: {{x: 0}}\n")
        write(root, "fleet.yaml", FLEET)
        write(root, "data.yaml", VOLUME)
        write(root, "runs.yaml", f"{SWEEP}---\n{TASK}")
        write(root, "one.py", "")
        memory = ReadingCache()
        for edit in edits:
            apply_edit(root, edit)
            expected = load_tree(root)
            for loaded in (through_disk(root, folder), load_tree(root, cache=memory)):
                assert loaded == expected
                assert spelled(loaded) == spelled(expected)
                assert documents(loaded) == documents(expected)


# Mostly apart, or each load would go through all passes for what the one before was told.
PATHS = [
    "p0",
    "p1",
    "p2",
    "p3",
    "p0/in",
    "p1/in",
    "q",
    "q/r",
    "q0",
    "/q",
    "/q/r",
    ".",
    "p|0",
    "../q",
]
MOVES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(PATHS),
        st.sampled_from(["local", "local", "local", "other"]),
        st.sampled_from(["", "", "", "region: x\n", "description: d\n"]),
    ),
    min_size=1,
    max_size=8,
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(moves=MOVES)
@example(moves=[(1, ".", "local", ""), (0, "p0", "local", "")])
def test_volumes_that_move_come_to_the_same(settled, moves):
    """Wherever volumes are moved, one in another's way is told as without a cache."""
    with tempfile.TemporaryDirectory() as name:
        root, folder = Path(name) / "tree", Path(name) / "cache"
        write(root, "environment.yaml", ENVIRONMENT)
        write(root, "fleet.yaml", f"{FLEET}---\n{FLEET.replace('name: local', 'name: other')}")
        lying = [_volume(number, f"p{number}") for number in range(4)]
        memory = ReadingCache()
        for number, path, fleet, more in [(0, "p0", "local", ""), *moves]:
            lying[number] = _volume(number, path, fleet, more)
            write(root, "two.yaml", "---\n".join(lying[:2]))
            write(root, "more.yaml", "---\n".join(lying[2:]))
            expected = load_tree(root)
            for loaded in (through_disk(root, folder), load_tree(root, cache=memory)):
                assert loaded == expected
                assert spelled(loaded) == spelled(expected)
                assert documents(loaded) == documents(expected)


def _volume(number: int, path: str, fleet: str = "local", more: str = "") -> str:
    return f"type: volume\nname: v{number}\nfleet: {fleet}\npath: '{path}'\n{more}"


def documents(loaded) -> str:
    if loaded.desired is None:
        return ""
    beyond = [one.declared for one in loaded.desired.beyond.values()]
    return json.dumps([one.document for one in [*loaded.desired.resources.values(), *beyond]])

"""Readings that are kept: the same as without, whatever happens to the tree and to the cache."""

from __future__ import annotations

import json
import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.spec.tree import cache_file, cache_format, load_file, load_tree
from fleetform.spec.tree.cache import ReadingCache
from fleetform.spec.tree.cache_file import open_cache, save_cache
from unit.spec.trees import ENVIRONMENT, spelled, write

FLEET = "type: fleet\nname: local\nlocal: true\nnodes: 2\n"
TASK = "type: task\nname: train\ncommands: [python train.py]\nfleets: [local]\n"


@pytest.fixture
def settled(monkeypatch):
    """Files of this test count as settled at once, as they would two seconds later."""
    monkeypatch.setattr("fleetform.spec.tree.cache.SETTLED_NS", -(10**18))


@pytest.fixture
def root(tmp_path):
    """A small tree."""
    write(tmp_path, "tree/environment.yaml", ENVIRONMENT)
    write(tmp_path, "tree/fleets.yaml", FLEET)
    write(tmp_path, "tree/runs/train.yaml", TASK)
    return tmp_path / "tree"


def through_disk(root: Path, folder: Path):
    """Load as a command does: with what the last one wrote."""
    cache = open_cache(folder, root)
    loaded = load_tree(root, cache=cache)
    save_cache(cache, folder, root)
    return loaded


def read_anew(monkeypatch):
    """Count the documents that are read through their models from now on."""
    counted = []
    from fleetform.spec.tree.reader import Reader

    read = Reader.read

    def counting(self, written):
        counted.append(written.file)
        return read(self, written)

    monkeypatch.setattr(Reader, "read", counting)
    return counted


def test_nothing_is_read_twice(root, tmp_path, settled, monkeypatch):
    """What did not change is not parsed, validated or opened again."""
    first = through_disk(root, tmp_path / "cache")
    counted = read_anew(monkeypatch)
    opened = []
    from fleetform.spec.tree import incremental, sources

    read_file = sources.read_file
    for module in (incremental, sources):
        monkeypatch.setattr(
            module,
            "read_file",
            lambda *args, **named: opened.append(args[1]) or read_file(*args, **named),
        )
    assert through_disk(root, tmp_path / "cache") == first
    assert counted == []
    assert opened == ["environment.yaml"]


def test_one_edit_is_one_reading(root, tmp_path, settled, monkeypatch):
    """A changed file is read, and no other."""
    through_disk(root, tmp_path / "cache")
    write(root, "runs/train.yaml", TASK + "priority: 7\n")
    counted = read_anew(monkeypatch)
    loaded = through_disk(root, tmp_path / "cache")
    assert counted == ["runs/train.yaml"]
    assert loaded == load_tree(root)


def test_a_touched_file_is_known_by_its_content(root, tmp_path, settled, monkeypatch):
    """A checkout gives a file another inode and time, and the same meaning."""
    through_disk(root, tmp_path / "cache")
    os.utime(root / "fleets.yaml", (1, 1))
    counted = read_anew(monkeypatch)
    through_disk(root, tmp_path / "cache")
    assert counted == []


def test_a_young_file_is_opened(root, tmp_path):
    """Within a tick of the clock a file may change and look the same, so its bytes decide."""
    file = root / "runs" / "train.yaml"
    through_disk(root, tmp_path / "cache")
    seen = file.stat()
    file.write_text(TASK.replace("train.py", "brain.py"))
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    loaded = through_disk(root, tmp_path / "cache")
    assert loaded == load_tree(root)
    assert "brain.py" in str(loaded.desired.resources)


def test_files_that_runs_name_are_looked_at(root, tmp_path, settled):
    """A changed script is a changed run, although the document is the same."""
    write(root, "runs/train.py", "print(1)\n")
    write(root, "runs/train.yaml", TASK + "files: [./train.py]\n")
    before = through_disk(root, tmp_path / "cache")
    write(root, "runs/train.py", "print(2)\n")
    after = through_disk(root, tmp_path / "cache")
    assert after == load_tree(root)
    assert after.desired.digest != before.desired.digest
    (root / "runs/train.py").unlink()
    assert through_disk(root, tmp_path / "cache") == load_tree(root)


def test_values_of_the_environment_are_a_condition(root, tmp_path, settled):
    """Another value makes another reading of those documents that can name one."""
    write(
        root, "runs/train.yaml", TASK.replace("[python train.py]", "'python ${{ values.script }}'")
    )
    for script in ("one.py", "two.py", "one.py"):
        write(root, "environment.yaml", f"{ENVIRONMENT}values: {{script: {script}}}\n")
        loaded = through_disk(root, tmp_path / "cache")
        assert loaded == load_tree(root)
        assert script in str(loaded.desired.resources)


def test_overlays_reach_kept_documents(root, tmp_path, settled):
    """Patches, bases and profiles change documents whose files did not change."""
    through_disk(root, tmp_path / "cache")
    patch = "patches: [{target: run/train, merge: {priority: 9}}]\n"
    write(root, "environment.yaml", ENVIRONMENT + patch)
    assert through_disk(root, tmp_path / "cache") == load_tree(root)
    write(tmp_path, "base/fleet.yaml", FLEET)
    (root / "fleets.yaml").unlink()
    write(root, "environment.yaml", f"{ENVIRONMENT}extends: ../base\n{patch}")
    for _ in range(2):
        assert through_disk(root, tmp_path / "cache") == load_tree(root)
    write(root, "environment.yaml", f"{ENVIRONMENT}extends: ../base\n")
    write(root, "profile.yaml", "type: profile\nname: short\ndefault: true\nmax_duration: 1h\n")
    for _ in range(2):
        loaded = through_disk(root, tmp_path / "cache")
        assert loaded == load_tree(root)


def test_problems_with_others_are_placed_again(root, tmp_path, settled):
    """A name that nobody declares any more is told in a file that did not change."""
    through_disk(root, tmp_path / "cache")
    (root / "fleets.yaml").unlink()
    for _ in range(3):
        loaded = through_disk(root, tmp_path / "cache")
        assert loaded == load_tree(root)
        assert [one.code for one in loaded.findings] == ["unknown-reference"]


def test_other_code_reads_anew(root, tmp_path, settled, monkeypatch):
    """A reading is only good for the code that made it."""
    through_disk(root, tmp_path / "cache")
    counted = read_anew(monkeypatch)
    monkeypatch.setattr(cache_format, "language_version", lambda: "another")
    through_disk(root, tmp_path / "cache")
    assert len(counted) == 2


@pytest.mark.parametrize("source", ["two.py", "two.toml"])
def test_the_version_covers_every_source(source, tmp_path, monkeypatch):
    """One letter in any module or table is another version of the language."""
    write(tmp_path, "spec/one.py", "A = 1\n")
    write(tmp_path, f"spec/kinds/{source}", "B = 1\n")
    monkeypatch.setattr(cache_format, "_PACKAGE", tmp_path / "spec")
    versions = set()
    for text in ("B = 1\n", "B = 2\n"):
        write(tmp_path, f"spec/kinds/{source}", text)
        cache_format.language_version.cache_clear()
        versions.add(cache_format.language_version())
    cache_format.language_version.cache_clear()
    assert len(versions) == 2


def test_a_file_by_itself_is_kept_too(tmp_path, settled, monkeypatch):
    """A file outside of any environment, checked again and again."""
    write(tmp_path, "one.yaml", TASK + "nodes: none\n")
    cache = ReadingCache()
    first = load_file(tmp_path, "one.yaml", cache=cache)
    counted = read_anew(monkeypatch)
    assert load_file(tmp_path, "one.yaml", cache=cache) == first
    assert first.errors
    assert counted == []


def test_the_file_is_its_users_own(root, tmp_path):
    """Nobody else reads it, and what somebody else could have written is not believed."""
    through_disk(root, tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o666)
    assert list(open_cache(tmp_path / "cache", root).current()) == []


def test_a_folder_that_cannot_be_written_is_no_matter(root, tmp_path):
    """The tree is read without a cache, as if there were none."""
    (tmp_path / "file").write_text("")
    assert through_disk(root, tmp_path / "file" / "cache") == load_tree(root)


def test_old_trees_make_room(root, tmp_path, monkeypatch):
    """Beyond the bound, what was written longest ago goes."""
    folder = tmp_path / "cache"
    through_disk(root, folder)
    (first,) = folder.iterdir()
    os.utime(first, (1, 1))
    monkeypatch.setattr(cache_file, "SIZE_MAX", first.stat().st_size)
    write(tmp_path, "other/environment.yaml", ENVIRONMENT)
    write(tmp_path, "other/fleet.yaml", FLEET)
    through_disk(tmp_path / "other", folder)
    assert first not in set(folder.iterdir())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_file_is_no_cache(data):
    """Bytes changed, cut off or put in at random: the tree is read all the same."""
    with tempfile.TemporaryDirectory() as name:
        root, folder = Path(name) / "tree", Path(name) / "cache"
        write(root, "environment.yaml", ENVIRONMENT)
        write(root, "one.yaml", TASK + "nodes: none\n")
        expected = through_disk(root, folder)
        (file,) = folder.iterdir()
        content = bytearray(file.read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        what = data.draw(st.sampled_from(["flip", "cut", "insert", "empty"]))
        if what == "flip":
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        elif what == "cut":
            del content[at:]
        elif what == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        else:
            content.clear()
        file.write_bytes(content)
        assert through_disk(root, folder) == expected


NAMES = st.sampled_from(["one", "two", "three"])
DOCUMENTS = st.one_of(
    st.builds("type: fleet\nname: {}\nlocal: true\nnodes: {}\n".format, NAMES, st.integers(0, 3)),
    st.builds("type: volume\nname: {}\nfleet: {}\npath: {}\n".format, NAMES, NAMES, NAMES),
    st.builds(
        "type: task\nname: {}\ncommands: [echo '${{{{ values.x }}}}']\nfleets: [{}]\nvolumes: ['{}:/d']\n".format,
        NAMES, NAMES, NAMES,
    ),
    st.builds(
        "type: task\nname: {}\nmatrix: {{lr: [1, 2.5, x]}}\ncommands: ['echo ${{{{ matrix.lr }}}}']\n"
        "depends_on: [{}]\nfiles: [./{}.py]\n".format, NAMES, NAMES, NAMES,
    ),
    st.builds("type: task\nname: {}\nprofile: {}\ncomands: [x]\n".format, NAMES, NAMES),
    st.builds("type: profile\nname: {}\npriority: {}\n".format, NAMES, st.integers(0, 200)),
    st.sampled_from(["- 1\n", "", "a: [\n", "# nothing\n", "type: task\nname: [x]\n", "profiles: [{name: one}]\n"]),
)  # fmt: skip
TEXTS = st.lists(DOCUMENTS, min_size=1, max_size=3).map("---\n".join)
PATHS = st.sampled_from(["a.yaml", "b.yaml", "sub/a.yaml", "sub/c.yml"])
ENVIRONMENTS = st.sampled_from(
    [
        "",
        "values: {x: 1}\n",
        "values: {x: 2}\n",
        "patches: [{target: run/one, merge: {priority: 3}}]\n",
        "patches: [{target: 'run/*', patch: [{op: remove, path: /fleets}]}]\nvalues: {x: 1}\n",
        "patches: [{target: fleet/two, delete: true}]\n",
    ]
)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, TEXTS),
        st.tuples(st.just("remove"), PATHS, st.none()),
        st.tuples(st.just("script"), NAMES, st.sampled_from(["1", "2"])),
        st.tuples(st.just("environment"), st.none(), ENVIRONMENTS),
        st.tuples(st.just("touch"), PATHS, st.none()),
        st.tuples(st.just("forget"), st.none(), st.none()),
        st.tuples(st.just("buffer"), PATHS, TEXTS),
    ),
    min_size=1,
    max_size=8,
)


def apply_edit(root: Path, folder: Path, buffers: dict[str, bytes], edit) -> None:
    what, name, text = edit
    if what == "write":
        write(root, name, text)
    elif what == "remove":
        (root / name).unlink(missing_ok=True)
    elif what == "script":
        write(root, f"{name}.py", text)
    elif what == "environment":
        write(root, "environment.yaml", ENVIRONMENT + text)
    elif what == "touch" and (root / name).exists():
        os.utime(root / name, (1, random.randrange(10**9)))
    elif what == "forget":
        for file in folder.glob("*"):
            file.unlink()
    elif what == "buffer":
        buffers[name] = text.encode()


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(edits=EDITS, base=st.booleans())
def test_a_cache_changes_nothing(settled, edits, base):
    """After any edits, a tree loads from disk's cache and from memory's as it does from none."""
    with tempfile.TemporaryDirectory() as name:
        root, folder = Path(name) / "tree", Path(name) / "cache"
        extends = "extends: ../base\n" if base else ""
        write(root, "environment.yaml", ENVIRONMENT + extends)
        write(
            Path(name) / "base",
            "shared.yaml",
            FLEET.replace("local\n", "one\n", 1) + "---\n" + TASK,
        )
        memory = ReadingCache()
        buffers: dict[str, bytes] = {}
        for edit in edits:
            apply_edit(root, folder, buffers, edit)
            expected = load_tree(root)
            assert through_disk(root, folder) == expected
            buffered = load_tree(root, buffers=buffers)
            assert load_tree(root, cache=memory, buffers=buffers) == buffered
            kept = load_tree(root, cache=memory)
            assert spelled(kept) == spelled(expected)
            assert json.dumps(documents(kept)) == json.dumps(documents(expected))


def documents(loaded) -> list[object]:
    if loaded.desired is None:
        return []
    beyond = [one.declared for one in loaded.desired.beyond.values()]
    return [one.document for one in [*loaded.desired.resources.values(), *beyond]]

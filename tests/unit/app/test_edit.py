from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import applied
from fleetform.app.edit import ABSENT, Editor
from fleetform.app.edits import Edits, write_edits
from fleetform.app.problems import EditProblem
from fleetform.app.workspace import Workspace
from fleetform.spec.desired import ResourceKey

TRAIN = "# slow\ntype: task\nname: train  # the one\ncommands: [echo hi]\n"
OTHER = "type: task\nname: other\ncommands:\n  - echo  # and nothing else\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    return applied.write_tree(tmp_path / "lab", applied.FLEET, TRAIN, OTHER)


def editor(root: Path) -> Editor:
    return Editor(Workspace.open(str(root)))


def written(root: Path, edits: Edits) -> dict[str, str]:
    write_edits(root, edits)
    return {edit.path: (root / edit.path).read_text() for edit in edits.files}


def test_one_document_of_several_is_changed(root: Path) -> None:
    """The others, and all comments, stay byte for byte; the mode and line ends too."""
    tree = root / "tree.yaml"
    tree.write_bytes(tree.read_bytes().replace(b"\n", b"\r\n"))
    tree.chmod(0o640)
    before = tree.read_bytes()
    at_work = editor(root)
    at_work.set(at_work.find("train"), ("priority",), 5)
    edits = at_work.finish()
    write_edits(root, edits)
    assert tree.read_bytes() == before.replace(
        b"commands: [echo hi]\r\n", b"commands: [echo hi]\r\npriority: 5\r\n"
    )
    assert tree.stat().st_mode & 0o777 == 0o640
    assert edits.touched == (ResourceKey("run", "train"),)
    assert edits.loaded.desired is not None
    assert edits.loaded.desired.resources[ResourceKey("run", "train")].document["priority"] == 5


def test_what_is_so_already_is_no_edit(root: Path) -> None:
    """Asking twice writes once."""
    at_work = editor(root)
    at_work.set(at_work.find("fleet/local"), ("nodes",), 1)
    at_work.set(at_work.find("train"), ("priority",), ABSENT)
    assert at_work.finish().files == ()


def test_an_edit_that_makes_an_error_is_refused_with_it(root: Path) -> None:
    """Also one in another document: what referred to what is gone."""
    (root / "tree.yaml").write_text(
        (root / "tree.yaml").read_text().replace("echo hi]\n", "echo hi]\ndepends_on: [other]\n")
    )
    at_work = editor(root)
    at_work.remove_document(at_work.find("other"))
    with pytest.raises(EditProblem, match="1 error") as refused:
        at_work.finish()
    assert [one.code for one in refused.value.findings] == ["unknown-reference"]


def test_other_peoples_errors_are_no_obstacle(root: Path) -> None:
    """A file with an error is left alone; a right one is edited."""
    (root / "broken.yaml").write_text("type: task\nname: broken\n")
    at_work = editor(root)
    at_work.set(at_work.find("train"), ("priority",), 5)
    assert [edit.path for edit in at_work.finish().files] == ["tree.yaml"]
    at_work = editor(root)
    with pytest.raises(EditProblem, match=r"broken\.yaml has 1 error"):
        at_work.set(at_work.find("broken"), ("priority",), 5)


# -- what is inherited ------------------------------------------------------------------------


@pytest.fixture
def child(root: Path, tmp_path: Path) -> Path:
    """An environment that extends the other one."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "child"
    folder.mkdir()
    (root / "environment.yaml").write_text("type: environment\nname: lab\nabstract: true\n")
    (folder / "environment.yaml").write_text(
        f"type: environment\nname: child\nuid: {applied.UID}\nextends: ../lab\n"
    )
    return folder


def test_a_base_is_patched_and_never_changed(root: Path, child: Path) -> None:
    """Its other children would be changed with it."""
    at_work = editor(child)
    at_work.set(at_work.find("train"), ("resources", "cpu"), 2)
    assert written(child, at_work.finish()) == {
        "environment.yaml": (
            f"type: environment\nname: child\nuid: {applied.UID}\nextends: ../lab\n"
            "patches:\n  - target: run/train\n    merge:\n      resources:\n        cpu: 2\n"
        )
    }
    at_work = editor(child)
    at_work.set(at_work.find("train"), ("resources", "cpu"), 3)
    (text,) = written(child, at_work.finish()).values()
    assert text.endswith("merge:\n      resources:\n        cpu: 3\n")
    assert text.count("target:") == 1


def test_a_field_of_a_base_is_taken_out(root: Path, child: Path) -> None:
    """By null, as a merge patch has it."""
    at_work = editor(child)
    at_work.set(at_work.find("fleet/local"), ("nodes",), ABSENT)
    (text,) = written(child, at_work.finish()).values()
    assert text.endswith("merge:\n      nodes: null\n")


def test_where_a_patch_wins_the_patch_is_changed(root: Path) -> None:
    """The document may say what it likes; what it comes to is what was asked for."""
    path = root / "environment.yaml"
    path.write_text(path.read_text() + "patches: [{target: run/train, merge: {priority: 7}}]\n")
    at_work = editor(root)
    at_work.set(at_work.find("train"), ("priority",), 9)
    edits = at_work.finish()
    assert [edit.path for edit in edits.files] == ["environment.yaml"]
    assert "merge: {priority: 9}" in written(root, edits)["environment.yaml"]


def test_what_a_pattern_decides_gets_a_patch_behind_it(root: Path) -> None:
    """A patch of many is not changed for one."""
    path = root / "environment.yaml"
    path.write_text(path.read_text() + "patches:\n  - {target: run/*, merge: {priority: 7}}\n")
    at_work = editor(root)
    at_work.set(at_work.find("train"), ("priority",), 9)
    edits = at_work.finish()
    desired = edits.loaded.desired
    assert desired is not None
    said = {key.name: one.document.get("priority") for key, one in desired.resources.items()}
    assert (said["train"], said["other"]) == (9, 7)


def test_a_profile_is_outdone_by_the_document(root: Path) -> None:
    """What a run says itself wins, so that is where it is said."""
    (root / "profile.yaml").write_text("type: profile\nname: slow\npriority: 7\n")
    tree = root / "tree.yaml"
    tree.write_text(tree.read_text().replace("echo hi]\n", "echo hi]\nprofile: slow\n"))
    at_work = editor(root)
    at_work.set(at_work.find("train"), ("priority",), 9)
    edits = at_work.finish()
    assert [edit.path for edit in edits.files] == ["tree.yaml"]
    at_work = editor(root)
    at_work.set(at_work.find("profile/slow"), ("priority",), 1)
    assert [edit.path for edit in at_work.finish().files] == ["profile.yaml"]


# -- promises ---------------------------------------------------------------------------------

_FIELDS = st.sampled_from(
    [("priority",), ("max_duration",), ("env", "LR"), ("resources", "cpu"), ("tags", "team")]
)
_VALUES = {"priority": st.integers(0, 100), "max_duration": st.just("2h")}
_EDITS = st.lists(
    _FIELDS.flatmap(
        lambda path: st.tuples(
            st.just(path),
            st.one_of(_VALUES.get(path[0], st.integers(1, 9).map(str)), st.just(ABSENT)),
            st.sampled_from(["train", "other"]),
        )
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(wanted=_EDITS)
def test_edits_say_what_was_asked_and_keep_all_comments(root: Path, wanted) -> None:
    """Whatever is set and taken out, in any order: comments, and what nobody named, stay."""
    applied.write_tree(root, applied.FLEET, TRAIN, OTHER)
    at_work = editor(root)
    for path, value, name in wanted:
        at_work.set(at_work.find(name), path, value)
    edits = at_work.finish()
    write_edits(root, edits)
    text = (root / "tree.yaml").read_text()
    for comment in ("# slow\n", "name: train  # the one\n", "- echo  # and nothing else\n"):
        assert comment in text
    assert text.startswith(applied.FLEET)
    last = {(name, path): value for path, value, name in wanted}
    loaded = Workspace.open(str(root)).load()
    assert not loaded.errors
    assert loaded.desired is not None
    for (name, path), value in last.items():
        said = loaded.desired.resources[ResourceKey("run", name)].document.get(path[0])
        found = said if len(path) == 1 or said is None else said.get(path[1])
        assert (found is None) == (value is ABSENT), (path, value, text)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=_FIELDS)
def test_taking_back_gives_the_same_bytes(root: Path, path) -> None:
    """What is set where nothing was and taken out again leaves no trace."""
    applied.write_tree(root, applied.FLEET, TRAIN, OTHER)
    before = (root / "tree.yaml").read_bytes()
    for value in (3 if path[0] != "max_duration" else "3h", ABSENT):
        at_work = editor(root)
        at_work.set(at_work.find("train"), path[:1] if value is ABSENT else path, value)
        write_edits(root, at_work.finish())
    assert (root / "tree.yaml").read_bytes() == before


OVERLOOKED = (
    "type: fleet\nname: local\nnodes: 1\nlocal: {cpu: 8, memory: 8GB}\ninitial: [nodes]\n",
    "type: task\nname: train\ncommands: [echo hi]\nenv: {HOST: a}\nignore: ['env.*']\n",
)


def test_a_value_that_does_not_count_is_refused(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written, it would look as if it held; before anything is there, it does."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "other"))
    lab = applied.write_tree(tmp_path / "overlooked", *OVERLOOKED)
    before = (lab / "tree.yaml").read_bytes()

    def asked(address: str, *wishes: tuple[tuple[str, ...], object]) -> Edits:
        at_work = editor(lab)
        for path, value in wishes:
            at_work.set(at_work.find(address), path, value)
        return at_work.finish()

    assert asked("fleet/local", (("nodes",), 3)).files
    applied.enter(lab)
    with pytest.raises(EditProblem, match="takes effect only when the resource is created or run"):
        asked("fleet/local", (("nodes",), 3))
    with pytest.raises(EditProblem, match=r"`env\.HOST` would have no effect"):
        asked("train", (("env", "HOST"), "b"), (("priority",), 5))
    assert (lab / "tree.yaml").read_bytes() == before
    # What is made anew with the same edit begins with it, and what is taken out counts.
    assert asked("fleet/local", (("nodes",), 3), (("blocks",), 2), (("sharing",), "blocks")).files
    assert asked("fleet/local", (("nodes",), 3), (("initial",), ABSENT)).files

"""From a path to a report: which files are asked about, and how they are called."""

from __future__ import annotations

import pytest

import applied
from fleetform.app.validate import check
from fleetform.spec.desired import FILE_NAME

BROKEN = "type: task\nname: broken\ncomands: [a]\n"


@pytest.fixture
def root(tmp_path):
    """A tree within a repository, with a mistake in a file below."""
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    tree = applied.write_tree(tmp_path / "repository" / "lab", applied.FLEET)
    (tree / "runs").mkdir()
    (tree / "runs" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    return tree


def places(report):
    return {one.place.file for one in report.findings}


def test_a_tree_and_a_file_of_it_tell_the_same(root):
    """Asking for one file leaves out what others say and changes nothing of its own."""
    whole = check(str(root))
    part = check(str(root / "runs" / "broken.yaml"))
    assert part.findings == tuple(
        one for one in whole.findings if one.place.file == "runs/broken.yaml"
    )
    assert part.findings
    assert (part.folder, whole.folder) == ("lab", "lab")


def test_files_are_listed_when_asked_for(root):
    """With those that have no findings; a file is a list of one."""
    assert check(str(root)).files == ()
    listed = check(str(root), list_files=True).files
    assert {FILE_NAME, "runs/broken.yaml"} < set(listed)
    one = check(str(root / "runs" / "broken.yaml"), list_files=True)
    assert one.files == ("runs/broken.yaml",)


def test_a_linked_folder_is_where_it_leads_to(root, tmp_path):
    """Pipelines work in folders of any name; the commit knows one."""
    (tmp_path / "link").symlink_to(root)
    for path in (tmp_path / "link", tmp_path / "link" / "runs" / "broken.yaml"):
        report = check(str(path))
        assert (report.folder, places(report)) == ("lab", {"runs/broken.yaml"})


def test_a_link_out_of_the_tree_is_checked_by_itself(root, tmp_path):
    """The environment does not read it, so that only what stands in it can be told."""
    outside = tmp_path / "outside.yaml"
    outside.write_text(BROKEN.replace("comands", "commands") + "fleets: [none]\n", encoding="utf-8")
    (root / "linked.yaml").symlink_to(outside)
    assert check(str(root / "linked.yaml")).findings == ()
    assert "linked.yaml" in places(check(str(root)))


def test_a_file_below_a_repository_may_name_others_of_it(tmp_path):
    """Files of a run lie beside the folder of its document as often as in it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "code.py").write_text("", encoding="utf-8")
    (tmp_path / "runs").mkdir()
    file = tmp_path / "runs" / "train.yaml"
    file.write_text(
        "type: task\nname: train\ncommands: [a]\nfiles: [../code.py:code.py]\n", encoding="utf-8"
    )
    report = check(str(file), list_files=True)
    assert (report.findings, report.files, report.folder) == ((), ("runs/train.yaml",), "")


def test_a_broken_environment_hides_no_file(root):
    """A file's own mistakes are told whatever else cannot be read."""
    (root / FILE_NAME).write_text("type: environment\n", encoding="utf-8")
    assert places(check(str(root / "runs" / "broken.yaml"))) == {"runs/broken.yaml"}
    assert places(check(str(root))) == {FILE_NAME, "runs/broken.yaml"}

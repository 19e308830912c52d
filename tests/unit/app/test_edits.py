"""Files of a tree are written all together, or not at all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fleetform.app import edits as module
from fleetform.app.edits import Edits, FileEdit, write_edits
from fleetform.app.problems import EditProblem

FIRST, GOES, LAST = "first.yaml", "goes.yaml", "last.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (FIRST, GOES, LAST):
        (tmp_path / name).write_text(f"of {name}\n")
    return tmp_path


def edits(root: Path) -> Edits:
    """A file is changed, one is made, one goes, and another is changed at last."""
    read = {name: (root / name).read_bytes() for name in (FIRST, GOES, LAST)}
    files = (
        FileEdit(FIRST, read[FIRST], b"changed\n"),
        FileEdit("made.yaml", None, b"made\n"),
        FileEdit(GOES, read[GOES], None),
        FileEdit(LAST, read[LAST], b"changed\n"),
    )
    return Edits(files, (), SimpleNamespace())


def content(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(root.iterdir())}


def test_all_is_written(root: Path) -> None:
    """What is new is made, and what goes is gone."""
    write_edits(root, edits(root))
    assert content(root) == {FIRST: "changed\n", LAST: "changed\n", "made.yaml": "made\n"}


def test_a_file_that_changed_meanwhile_stays(root: Path) -> None:
    """With what somebody else has written there, and nothing else is touched."""
    wanted = edits(root)
    (root / LAST).write_text("of somebody else\n")
    before = content(root)
    with pytest.raises(EditProblem, match=r"last\.yaml was changed"):
        write_edits(root, wanted)
    assert content(root) == before


def test_a_file_that_changes_at_the_last_moment_stays(root: Path, monkeypatch) -> None:
    """All had been as they were read; what was written before it is taken back."""
    real = module.replace_file

    def late(path: Path, before: bytes, after: bytes) -> None:
        if path.name == LAST and after == b"changed\n":
            path.write_text("of somebody else\n")
        real(path, before, after)

    before = content(root)
    monkeypatch.setattr(module, "replace_file", late)
    with pytest.raises(EditProblem, match=r"last\.yaml was changed"):
        write_edits(root, edits(root))
    assert content(root) == {**before, LAST: "of somebody else\n"}


def test_a_write_that_fails_is_taken_back(root: Path, monkeypatch) -> None:
    """A full disk at the last file leaves the others as they were."""
    real = module.replace_file

    def full(path: Path, before: bytes, after: bytes) -> None:
        if path.name == LAST:
            raise OSError(28, "No space left on device")
        real(path, before, after)

    before = content(root)
    monkeypatch.setattr(module, "replace_file", full)
    with pytest.raises(OSError, match="No space"):
        write_edits(root, edits(root))
    assert content(root) == before

"""What is at a volume's place, as anybody with a shell may have left it."""

from __future__ import annotations

import json
from pathlib import Path

from fleetform.providers.local.folder import VOLUME_MARK
from fleetform.providers.local.places import find_volumes, see_place

ENVIRONMENT = "e" * 32


def _mark(folder: Path, uid: str, environment: str = ENVIRONMENT) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    mark = {"environment_uid": environment, "volume_uid": uid, "name": uid}
    (folder / VOLUME_MARK).write_text(json.dumps(mark))


def test_a_marked_directory_says_whose_it_is(tmp_path) -> None:
    """Mark, permissions and identity are told, and that nothing but the mark is in it."""
    _mark(tmp_path / "data", "one")
    (tmp_path / "data").chmod(0o750)
    seen = see_place(str(tmp_path / "data"))
    assert (seen.exists, seen.volume_uid, seen.environment_uid) == (True, "one", ENVIRONMENT)
    assert (seen.mode, seen.is_empty) == ("0750", True)
    assert seen.identity == str((tmp_path / "data").stat().st_ino)


def test_data_makes_a_directory_other_than_empty(tmp_path) -> None:
    """An unmarked directory with something in it is not taken for a new one."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "note").write_text("kept")
    seen = see_place(str(tmp_path / "data"))
    assert (seen.exists, seen.volume_uid, seen.is_empty) == (True, "", False)


def test_a_place_that_is_gone_tells_when_its_folder_changed(tmp_path) -> None:
    """The folder around it changed when it went; a file in its place is no directory either."""
    seen = see_place(str(tmp_path / "data"))
    assert not seen.exists
    assert seen.changed_at_ms == tmp_path.stat().st_mtime_ns // 1_000_000
    (tmp_path / "data").write_text("no directory")
    assert not see_place(str(tmp_path / "data")).exists


def test_volumes_are_found_by_their_mark(tmp_path) -> None:
    """A renamed one is found where it lies; another environment's, and what is deep in data, not."""
    _mark(tmp_path / "a", "one")
    _mark(tmp_path / "sets" / "b", "two")
    _mark(tmp_path / "c", "three", "f" * 32)
    _mark(tmp_path / "a" / "inside", "four")
    found = [(one.uid, one.path) for one in find_volumes(tmp_path, ENVIRONMENT)]
    assert found == [("one", str(tmp_path / "a")), ("two", str(tmp_path / "sets" / "b"))]
    assert list(find_volumes(tmp_path / "nowhere", ENVIRONMENT)) == []

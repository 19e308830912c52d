"""Files of the engine room that must be whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.providers import private_files
from fleetform.providers.private_files import create_private, replace_private


def test_the_later_content_replaces_the_earlier(tmp_path: Path) -> None:
    """Only this user reads it, and nothing else is left in the folder."""
    path = tmp_path / "stacks/one/batch.json"
    replace_private(path, b"one")
    replace_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_the_first_of_two_creators_wins(tmp_path: Path) -> None:
    """The other one then reads what is there."""
    path = tmp_path / "key"
    create_private(path, b"one")
    create_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_earlier_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written before is whole, and no part of the new content stays."""

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "batch.json"
    replace_private(path, b"one")
    monkeypatch.setattr(private_files.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        replace_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]

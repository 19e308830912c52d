"""What the guard of all tests sees (`belongings`): a guard that sees nothing says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import belongings
from belongings import held, left_since, told


def test_what_is_left_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open file by its path and a child by what it runs; once they are gone, nothing."""
    monkeypatch.setattr(belongings, "SECONDS_MAX", 0.0)
    before = held()
    descriptor = os.open(tmp_path / "note", os.O_CREAT | os.O_RDWR)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        # Until it executes its program, it has no words.
        while not Path(f"/proc/{child.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        left = left_since(before)
        assert child.stdin is not None
        assert len(left) == 3, "the pipe as well"
        assert str(tmp_path / "note") in told(left)
        assert f"child {child.pid}: {sys.executable} -c input()" in told(left)
        os.close(descriptor)
        child.stdin.write(b"\n")
    assert left_since(before) == []

"""A directory that is a volume bears the mark of whose it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fleetform.agents.host import volumes
from fleetform.agents.protocol.messages import MakeVolume

MAKING = """
import sys
from fleetform.agents.host import volumes
from fleetform.agents.protocol.messages import MakeVolume
command = MakeVolume(1, "op-" + sys.argv[2], "v1", "data", sys.argv[1])
while sys.stdin.read(1) != "g":
    pass
volumes.make(command, "env")
"""


def names(path):
    return [one.name for one in Path(path).iterdir()]


def test_without_hard_links_one_mark_is_left_too(tmp_path, monkeypatch):
    """A shared file system may have none."""

    def link(*_):
        raise PermissionError

    monkeypatch.setattr(volumes.os, "link", link)
    path = str(tmp_path / "data")
    volumes.make(MakeVolume(1, "op-1", "v1", "data", path), "env")
    volumes.make(MakeVolume(1, "op-2", "v1", "data", path), "env")
    assert names(path) == [volumes.MARK]


def test_a_volume_is_made_once(tmp_path):
    """A second time nothing is changed; another owner is refused and told whose it is."""
    path = str(tmp_path / "data")
    volumes.make(MakeVolume(1, "op-1", "v1", "data", path), "env")
    volumes.make(MakeVolume(1, "op-2", "v1", "data", path), "env")
    assert json.loads((tmp_path / "data" / volumes.MARK).read_text())["operation_uid"] == "op-1"
    assert names(path) == [volumes.MARK]
    with pytest.raises(volumes.VolumeError, match="belongs to volume data of environment env"):
        volumes.make(MakeVolume(1, "op-3", "v1", "data", path), "other")


def test_agents_of_one_machine_make_a_volume_together(tmp_path):
    """However they meet, all of them succeed and one mark is left."""
    for number in range(3):
        path = str(tmp_path / f"data{number}")
        making = [
            subprocess.Popen([sys.executable, "-c", MAKING, path, str(one)], stdin=subprocess.PIPE)
            for one in range(4)
        ]
        for process in making:
            process.stdin.write(b"g")
            process.stdin.close()
        assert [process.wait(timeout=30) for process in making] == [0, 0, 0, 0]
        assert names(path) == [volumes.MARK]

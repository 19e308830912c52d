"""The agent's archive: one name, one content, and nothing in it but the agent."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fleetform.agents.client import bundle
from fleetform.agents.client.bundle import make_bundle

SPEAK = """
import sys
sys.path.insert(0, sys.argv[1])
from fleetform.agents.protocol.frames import Decoder, encode
from fleetform.agents.protocol.messages import Probe
print(Decoder().feed(encode(Probe(7))), "pyz" in encode.__code__.co_filename)
"""


def pythons() -> list[str]:
    """The running interpreter, and the oldest that hosts may have where there is one."""
    old = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))
    return [sys.executable, *map(str, old[-1:])]


def test_the_same_sources_give_the_same_file(tmp_path) -> None:
    """Bytes and name depend on the sources alone, not on the folder or the moment."""
    one = make_bundle(tmp_path / "one")
    bundle._archive.cache_clear()
    two = make_bundle(tmp_path / "two")
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_it_holds_the_agent_and_nothing_else(tmp_path) -> None:
    """Protocol and host travel; the controller's end stays, and the namespace stays open."""
    with zipfile.ZipFile(make_bundle(tmp_path)) as archive:
        names = archive.namelist()
    assert names == sorted(names)
    assert "fleetform/__init__.py" not in names
    rooms = {name.split("/")[2] for name in names if name.count("/") > 2}
    assert rooms == {"host", "protocol"}
    assert all(name.endswith(("/", ".py")) for name in names)


def test_what_is_there_is_not_written_again(tmp_path) -> None:
    """An agent may be running from it."""
    path = make_bundle(tmp_path)
    before = path.stat()
    assert make_bundle(tmp_path) == path
    assert path.stat() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_archive_for_this_python_holds_its_code(tmp_path) -> None:
    """What is compiled stands beside each source, and this Python runs it."""
    path = make_bundle(tmp_path, for_this_python=True)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert "fleetform/agents/protocol/frames.pyc" in names
    assert {name.removesuffix("c") for name in names if name.endswith(".pyc")} <= {*names}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SPEAK, str(path)], check=True, capture_output=True, text=True
    )  # fmt: skip
    assert done.stdout == "[Probe(id=7)] False\n"


def test_the_sources_name_a_release(tmp_path) -> None:
    """Archives with and without compiled code differ in name, and not in the name of their release."""
    portable, compiled = make_bundle(tmp_path), make_bundle(tmp_path, for_this_python=True)
    assert compiled.name != portable.name
    assert (
        bundle.portable_name(compiled.name) == portable.name == bundle.portable_name(portable.name)
    )


def test_code_of_another_source_is_left_out(tmp_path) -> None:
    """A file that was changed since, or that no Python has compiled, is compiled by each agent."""
    source = tmp_path / "one.py"
    source.write_bytes(b"number = 1\n")
    assert bundle._code(source, b"number = 1\n") == b""
    py_compile.compile(str(source), doraise=True)
    assert bundle._code(source, b"number = 1\n")
    os.utime(source, (1, 1))
    assert bundle._code(source, b"number = 1\n") == b""


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch) -> None:
    """A half-written archive never gets the name."""

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        make_bundle(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("python", pythons())
def test_old_pythons_read_it(tmp_path, python) -> None:
    """Isolated and without site-packages, the protocol comes out of the archive."""
    path = make_bundle(tmp_path)
    done = subprocess.run(
        [python, "-I", "-S", "-c", SPEAK, str(path)], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[Probe(id=7)] True\n"

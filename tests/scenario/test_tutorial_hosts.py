"""What the tutorial of hosts over SSH shows is what happens, on a lab of four hosts."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import PROGRAM, Lab, lab
from leftovers import end_agents, end_manager
from scenario import transcript

pytestmark = pytest.mark.waits

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-hosts.md"
NETWORK = "10.213.7."
"""That of the lab which readers start; tests have others."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path / "hosts", hosts=4) as running:
        yield running


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state home; whatever the page has left running ends with the test."""
    home = tmp_path / "state"
    yield home
    end_manager(home)
    end_agents(home)


def _write_program(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


@pytest.fixture
def home(tmp_path: Path, hosts: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's home: `~/.ssh` knows three hosts by name and has the key, and `lab` is a program."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    (home / ".ssh").mkdir(mode=0o700, parents=True)
    shutil.copy(hosts.identity, home / ".ssh/gpu_key")
    config = home / ".ssh/config"
    config.write_text(f"Include {hosts.config}\n")
    programs.mkdir()
    # Its first word is the command, and the others follow the options.
    call = shlex.join([sys.executable, str(PROGRAM)])
    directory = shlex.quote(str(hosts.directory))
    _write_program(
        programs / "lab", f'command=$1; shift; exec {call} "$command" --directory {directory} "$@"'
    )
    # OpenSSH takes the home folder of the account, whatever HOME says.
    ssh = shutil.which("ssh")
    _write_program(programs / "ssh", f'exec {ssh} -F {shlex.quote(str(config))} "$@"')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return home


@pytest.mark.usefixtures("home")
def test_the_tutorial_of_hosts_shows_what_happens(tmp_path: Path, state: Path, hosts: Lab) -> None:
    """Each command prints what the page says."""
    folder = tmp_path / "work"
    folder.mkdir()
    network = hosts.hosts["node1"].removesuffix("11")
    assert transcript.run(PAGE, folder, state, {NETWORK: network}) > 0

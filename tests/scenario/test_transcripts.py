"""What the documents show is what happens: they are typed, in a folder and with a state of their own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from scenario import transcript

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "tests" / "scenario").glob("*.md"))]


@pytest.fixture
def state(tmp_path):
    """A state home; whatever a document has left running ends with the test."""
    home = tmp_path / "state"
    yield home
    for lock in home.glob("environments/*/manager.lock"):
        with contextlib.suppress(ValueError, KeyError):
            end(json.loads(lock.read_text())["pid"])
    for file in home.glob("hosts/*/*/agent.pid"):
        with contextlib.suppress(ValueError):
            end(int(file.read_text()))


def end(pid):
    """End a process of ours, unless it has gone and its number is another one's now."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        if b"fleetform" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.stem)
def test_a_document_shows_what_happens(document, tmp_path, state, need):
    """Each command prints what the document says."""
    text = document.read_text()
    for program in ("curl", "git", "jq"):
        if re.search(rf"\b{program} ", text):
            need(program, shutil.which(program) is not None, f"{program} is not installed")
    folder = tmp_path / "work"
    folder.mkdir()
    assert transcript.run(document, folder, state) > 0

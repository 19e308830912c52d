"""What the documents show is what happens: they are typed, in a folder and with a state of their own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leftovers import end_agents, end_manager
from scenario import transcript

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "tests" / "scenario").glob("*.md"))
DOCUMENTS = [ROOT / "docs" / "tutorial.md", *SCENARIOS]


@pytest.fixture
def state(tmp_path):
    """A state home; whatever a document has left running ends with the test."""
    home = tmp_path / "state"
    yield home
    end_manager(home)
    end_agents(home)


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


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.stem)
def test_a_scenario_has_its_stop_on_the_tour(scenario):
    """It is named there by its own heading, and is short enough to be read at once."""
    lines = scenario.read_text().splitlines()
    tour = (ROOT / "docs" / "tour.md").read_text()
    assert f"[{lines[0].removeprefix('# ')}](../tests/scenario/{scenario.name})" in tour
    assert len(lines) <= 100

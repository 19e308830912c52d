"""What is documented is there, and what is there is documented."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleetform.agents.host.volumes import MARK
from fleetform.spec import schema
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents

ROOT = Path(__file__).parents[2]
# Inline links to files; addresses elsewhere are not ours to check.
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_the_reference_is_current():
    """Commands, fields, findings and exit codes read as the code has them: `make generate`."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.stale() == []


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.stem
)
def test_links_lead_somewhere(page):
    """A link to a file of this repository finds it."""
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    "page", ["how-to/guards.md", "how-to/aws-volumes.md", "reference/volume.md"]
)
def test_the_marker_of_a_volume_is_explained(page):
    """A person who finds the file on a volume can look up that it must not be deleted."""
    assert f"`{MARK}`" in (ROOT / "docs" / page).read_text(encoding="utf-8")


HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", [ROOT / "README.md", *HOW_TO], ids=lambda page: page.stem)
def test_links_to_headings_lead_somewhere(page):
    """What stands behind `#` is a heading of the page that is linked to, as GitHub names it."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [one for one in links if one[1] not in _anchors(page.parent / one[0])] == []


def _anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


def test_the_how_to_pages_are_listed():
    """Each heading of a page stands in the index."""
    index = (ROOT / "docs" / "how-to" / "README.md").read_text(encoding="utf-8")
    for page in HOW_TO:
        for heading in re.findall(
            r"^## ([^\[].+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            assert f"[{heading}]({page.name}#" in index


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_documents_of_the_how_to_are_valid(page):
    """What is copied from the page is accepted."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        nodes, findings = read_documents(block.encode(), page.name)
        assert not findings, block
        for node in nodes:
            value = plain(node)
            schema.MODELS[value["type"]].model_validate(value)


def test_a_word_of_the_glossary_stands_there_once():
    """One word for one idea, found by its letters."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\*", page, re.MULTILINE)]
    assert words == sorted(set(words))


def test_the_picture_of_a_plan_is_current():
    """The README shows what `fleetform plan` prints now: `make generate`."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "picture.py", "--check"],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == 0

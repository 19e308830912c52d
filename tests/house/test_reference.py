"""What is documented is there, and what is there is documented."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from fleetform.spec import schema
from fleetform.spec.documents import read_documents
from fleetform.spec.nodes import plain

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


def test_documents_of_the_how_to_are_valid():
    """What is copied from the page is accepted."""
    page = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:
        nodes, findings = read_documents(block.encode(), "how-to.md")
        assert not findings, block
        for node in nodes:
            value = plain(node)
            schema.MODELS[value["type"]].model_validate(value)

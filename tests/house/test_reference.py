"""What is documented is there, and what is there is documented."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

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

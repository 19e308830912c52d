"""
That people read plain English: no phrase of the list stands in help, reference, pages or transcripts.

Each phrase once made a reader look twice. The list gives the words to write instead; a phrase that
is right in one place is listed there with its reason, so that exceptions stay few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PHRASES = (
    ("the tree", "the configuration"),
    ("a tree", "a configuration"),
    ("your tree", "your configuration"),
    ("tree declares", "the configuration declares"),
    ("the world", "the actual state"),
    ("really there", "the actual state"),
    ("declared no more", "removed from the configuration"),
    ("no more", "no longer, or a number"),
    ("does not exist yet", "(nothing: `+` says it)"),
    ("made anew", "created again"),
    ("anew", "again"),
    ("nobody", "no person, no controller: name who"),
    ("somebody", "a person, a controller: name who"),
    ("whoever", "the person who"),
    ("anybody", "any user"),
    ("bears", "has"),
    ("of ours", "of fleetform"),
    ("let go", "released"),
    ("lets go", "releases"),
    ("taken in", "adopted"),
    ("take in", "adopt"),
    ("takes in", "adopts"),
    ("held back", "blocked"),
    ("holds it back", "blocks it"),
    ("what holds", "what blocks"),
    ("is held", "is blocked"),
    ("are held", "are blocked"),
    ("would release it", "would unblock it"),
    ("carried out", "applied, supported or run"),
    ("carries out", "applies, supports or runs"),
    ("carry out", "apply, support or run"),
    ("at stake", "impact"),
    ("for a while", "for a limited time"),
    ("above the tree", "override"),
    ("goes on without", "works without"),
    ("its own sake", "(say the effect)"),
    ("in vain", "without effect"),
    ("of one's own", "(name the owner)"),
    ("comes to", "is, or becomes"),
    ("stands in", "is in"),
    ("lies in", "is in"),
    ("what stands", "(name the thing)"),
    ("who is told", "(name the reader)"),
    ("is told", "is shown, or is reported"),
    ("are told", "are shown, or are reported"),
    ("makes it so", "applies it"),
    ("make it so", "apply it"),
    ("keeps it so", "keeps it applied"),
    ("keep it so", "keep it applied"),
    ("put aside", "kept as a snapshot"),
    ("puts aside", "keeps as a snapshot"),
    ("truth value", "boolean"),
    ("have hosts", "(imperative verb)"),
    ("ended badly", "failed"),
    ("ended well", "succeeded"),
    ("once more", "again"),
)
"""The phrase, and what to write instead."""


PAGES = (
    "README.md",
    "docs/glossary.md",
    "docs/tutorial.md",
    "docs/how-to/*.md",
    "docs/reference/*.md",
    "docs/drift.md",
    "docs/dstack-compatibility.md",
    "docs/supported.md",
    "docs/tour.md",
    "docs/architecture.md",
    "docs/language-server.md",
    "docs/testing.md",
    "docs/benchmarks.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
"""Globs of the pages that are held to it."""


def _pages() -> list[Path]:
    return sorted(page for glob in PAGES for page in ROOT.glob(glob))


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_plain_english(page: Path) -> None:
    """Help, reference, guides and transcripts use the terms of the glossary and none of the list."""
    assert list(_found(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "tests" / "scenario").glob("*.md")), ids=lambda page: page.stem
)
def test_the_prose_of_a_scenario_is_in_plain_english(page: Path) -> None:
    """Headings and paragraphs of the transcripts use none of the list; what is typed and printed is left out."""
    prose = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    assert list(_found(prose)) == []


_PATTERN = re.compile("|".join(rf"\b{re.escape(phrase)}\b" for phrase, _ in PHRASES), re.IGNORECASE)
_INSTEAD = dict(PHRASES)


def _found(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for found in _PATTERN.finditer(line):
            phrase = found[0].lower()
            yield f"{number}: `{phrase}` → {_INSTEAD[phrase]}: {line.strip()[:100]}"

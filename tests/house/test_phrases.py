"""
That people read plain English: no phrase of the list is in pages, transcripts, schemas or messages.

Each phrase once made a reader look twice. The list gives the words to write instead; a phrase that
is right in one place is listed there with its reason, so that exceptions stay few.
"""

from __future__ import annotations

import ast
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
    ("goes on", "continues"),
    ("go on", "continue"),
    ("by now", "now"),
    ("at work", "running"),
    ("gives back", "releases"),
    ("given back", "released or free"),
    ("held by", "blocked by, or allocated to"),
    ("who holds", "(name the process, or the run)"),
    ("foretold", "in the forecast"),
    ("taken up", "started"),
    ("takes up", "starts"),
    ("is to lie", "is mapped to"),
    ("what is there", "(name the thing)"),
    ("what was there", "(name the thing)"),
    ("what keeps", "why"),
    ("in its way", "blocks it"),
    ("sets right", "corrects"),
    ("takes note", "accepts, or records"),
    ("asked to end", "asked to stop"),
    ("come out otherwise", "outdated"),
    ("what it executes", "(name the fields)"),
    ("how it is driven", "(name the fields)"),
    ("words for people", "description"),
)
"""The phrase, and what to write instead."""


PAGES = (
    "README.md",
    "docs/glossary.md",
    "docs/tutorial.md",
    "docs/tutorial-hosts.md",
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
    "tests/scenario/*.md",
    "schemas/*.json",
)
"""
Globs of the pages that use none of them.

Of a transcript also what is typed and printed; of a schema its descriptions, which editors show.
"""

MODULES = (
    "agents/fleetform/**/*.py",
    "providers/fleetform/**/*.py",
    "reconciler/fleetform/**/*.py",
    "spec/fleetform/**/*.py",
)
"""Globs of the modules whose messages use none of them."""

_STORED = frozenset({"another host takes its place: its fleet wants one that is made anew"})
"""Strings that stay as they are: ledgers of earlier releases contain them."""


def _pages() -> list[Path]:
    return sorted({page for glob in PAGES for page in ROOT.glob(glob)})


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_plain_english(page: Path) -> None:
    """Help, reference, guides and transcripts use the terms of the glossary and none of the list."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".json":
        text = "\n".join(re.findall(r'"(?:description|summary)": (".*")', text))
    assert list(_found(text)) == []


def test_messages_are_in_plain_english() -> None:
    """Errors, notices, events and views use none of the list; docstrings and comments are left out."""
    modules = {module for glob in MODULES for module in ROOT.glob(glob)}
    found = [
        f"{module.relative_to(ROOT)}: {one}"
        for module in sorted(modules)
        for one in _found_in_strings(module.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_phrase_is_found_in_any_string() -> None:
    """Also where it is split over literals or around a value, and nowhere but in strings."""
    module = '''"""Nobody reads this."""\nf(f"{x} goes "\n  "on", "nobody")  # somebody\n'''
    assert [one.split(" → ")[0] for one in _found_in_strings(module)] == [
        "2: `goes on`",
        "3: `nobody`",
    ]


def _found_in_strings(source: str) -> Iterator[str]:
    done: set[int] = set()
    # A node comes before its children: docstrings and parts of strings are known when they come.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr):
            done.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            done.update(map(id, node.values))
            parts = (one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
            yield from _found_in(node, "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            shown = id(node) not in done and node.value not in _STORED
            yield from _found_in(node, node.value) if shown else ()


def _found_in(node: ast.expr, text: str) -> Iterator[str]:
    for one in _found(" ".join(text.split())):
        yield f"{node.lineno}: {one.split(': ', 1)[1]}"


_PATTERN = re.compile("|".join(rf"\b{re.escape(phrase)}\b" for phrase, _ in PHRASES), re.IGNORECASE)
_INSTEAD = dict(PHRASES)


def _found(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for found in _PATTERN.finditer(line):
            phrase = found[0].lower()
            yield f"{number}: `{phrase}` → {_INSTEAD[phrase]}: {line.strip()[:100]}"

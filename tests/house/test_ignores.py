"""Where a tool is told to look away, the line says why."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("agents", "providers", "reconciler", "spec")
NOQA = re.compile(r"# noqa: [A-Z0-9, ]+ -- \S")
# mypy reads nothing behind its brackets but another comment.
TYPE_IGNORE = re.compile(r"# type: ignore\[[a-z-, ]+\]  # \S")


def comments(*folders: str) -> Iterator[tuple[str, str]]:
    """Each comment of the files below these folders that tell a tool to look away."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            # To take all files apart lasts many seconds, and few have any such words.
            if "# noqa" in text or "# type: ignore" in text:
                for token in tokenize.generate_tokens(io.StringIO(text).readline):
                    if token.type == tokenize.COMMENT:
                        yield f"{path.relative_to(ROOT)}:{token.start[0]}", token.string


@pytest.mark.parametrize(("words", "form"), [("noqa", NOQA), ("type: ignore", TYPE_IGNORE)])
def test_an_exception_to_a_rule_has_its_reason(words: str, form: re.Pattern[str]) -> None:
    """Else nobody could tell which of them are still needed."""
    found = [(place, one) for place, one in comments(*CODE, "tests", "docs") if f"# {words}" in one]
    assert found
    assert [place for place, one in found if not form.search(one)] == []


def test_what_nobody_types_ignores_no_type() -> None:
    """Of tests, a type checker reads the simulation only; in others it would look as if something were wrong."""
    found = [
        place
        for place, one in comments("tests", "docs")
        if "# type: ignore" in one and not place.startswith("tests/simulation/")
    ]
    assert found == []

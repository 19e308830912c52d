from __future__ import annotations

import pytest

from fleetform.lsp.cursor import here
from fleetform.lsp.text import Text

SOURCE = """\
type: task
name: train  # a comment
commands:
  - |
    echo one
    echo two
resources: {gpu: "A100:80GB:1"}
---
type: fleet
name: local
"""


@pytest.mark.parametrize(
    ("words", "inside", "path", "is_key"),
    [
        ("name: train", 2, ("name",), True),
        ("name: train", 8, ("name",), False),
        ("echo two", 3, ("commands", 0), False),
        ("gpu:", 1, ("resources", "gpu"), True),
        ("A100", 2, ("resources", "gpu"), False),
        ("local", 0, ("name",), False),
    ],
)
def test_a_cursor_is_on_a_key_or_a_value(words, inside, path, is_key):
    """Of the document that it is in."""
    found = here(Text(SOURCE), SOURCE.index(words) + inside)
    assert (found.path, found.is_key) == (path, is_key)
    assert found.type == ("fleet" if words == "local" else "task")


@pytest.mark.parametrize("words", ["a comment", "resources: {"])
def test_between_them_is_nothing(words):
    """In a comment, between a key and its value."""
    found = here(Text(SOURCE), SOURCE.index(words) + len(words) - 1)
    assert found is None


@pytest.mark.parametrize("source", ["", "# nothing\n", "- a\n", "\x00"])
def test_a_text_without_a_document_has_nothing(source):
    """And says so."""
    assert here(Text(source), 0) is None

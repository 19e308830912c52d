"""
What people write that is no field or choice here, and what the same thing is called here.

The words are in `synonyms.toml`, which is read when the first of them is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fleetform.spec.kinds import BACKEND_TYPES
from fleetform.spec.names import bare_word

__all__ = ["fields_by_word", "meant_value", "words_by_choice"]

_FILE = Path(__file__).with_name("synonyms.toml")
_BACKEND: Mapping[str, Any] = {"like": ["every", "backend"]}


@functools.cache
def _table() -> dict[str, Any]:
    # Few documents have mistakes, and each start would pay for the import.
    import tomllib

    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@functools.cache
def fields_by_word() -> Mapping[str, Mapping[str, str]]:
    """By type, or type and part: the field that each word means."""
    sections = {**dict.fromkeys(BACKEND_TYPES, _BACKEND), **_table()["fields"]}
    return {part: _by_word(section) for part, section in sections.items()}


def _by_word(section: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for shared in section.get("like", ()):
        found |= _by_word(_table()["shared"][shared])
    for field, words in section.items():
        if field not in {"like", "without"}:
            found |= dict.fromkeys(words.split(), field)
    return {word: found[word] for word in found if word not in section.get("without", "").split()}


def words_by_choice() -> Mapping[str, Mapping[str, str]]:
    """By field, then by choice: the words, as they are compared, with a dash between parts."""
    found: Mapping[str, Mapping[str, str]] = _table()["values"]
    return found


def meant_value(field: str, word: str, choices: Collection[str]) -> str | None:
    """The choice of `field` that `word` means elsewhere; None if none is known."""
    bare = bare_word(word)
    for choice, words in words_by_choice().get(field, {}).items():
        if choice in choices and bare in map(bare_word, words.split()):
            return choice
    return None

"""Every regular expression of the language, against texts that are made to keep it busy."""

from __future__ import annotations

import collections
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import pytest

import fleetform.spec
from fleetform.spec import interpolate
from hostile.processor_time import processor_seconds

LENGTH = 20_000
"""Of a text: what takes quadratic time takes a second here, what takes linear a millisecond."""

SECONDS_MAX = 0.5

# A pattern that is not linear, and what keeps long texts from it.
BOUNDED = {
    "fleetform.spec.quantities.gpu._MEMORY": "_MEMORY_LENGTH_MAX",
    "fleetform.spec.quantities.ranges._DASHED": "_DASHED_LENGTH_MAX",
}
# What is no document's: names of fields, from tables of ours or typed by whoever asks for help.
OWN = {
    "fleetform.spec.explain._POSITION",
    "fleetform.spec.fields._POSITION",
    # Searched up to the last `}}`, which `test_an_expression_is_searched_for_once` tries.
    "fleetform.spec.interpolate._EXPRESSION",
}


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    for module in pkgutil.walk_packages(fleetform.spec.__path__, "fleetform.spec."):
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            # Where it is made, and not where it is imported.
            if isinstance(value, re.Pattern) and re.search(
                rf"^{name}\b.*=", inspect.getsource(loaded), re.MULTILINE
            ):
                yield f"{module.name}.{name}", value


PATTERNS = dict(patterns())
SOURCES = [
    inspect.getsource(importlib.import_module(module.name))
    for module in pkgutil.walk_packages(fleetform.spec.__path__, "fleetform.spec.")
]

# What the expressions look for, repeated, with an end that none of them wants.
PIECES = (
    "a", "A", "0", "1", " ", "\t", "\n", ".", "-", "+", ",", ":", "/", "_", '"', "'", "\\", "$", "{",
    "${{", "}}", "${{ ", "[", "]", "..", "1.", "1-", "1s", "1 s", "1to", "a ", "A.", "a-", "a.a", "a/",
    "1:", ': "', "- '", "name:", "\n---", "\n%TAG", "é", "…", "<<<<<<< ", "1,", "*", "GB", "8GB",
)  # fmt: skip
TEXTS = [
    head + piece * (LENGTH // len(piece)) + tail
    for piece in PIECES
    for head in ("", "1", "a", "${{")
    for tail in ("", "!", "\x00")
]


def uses(name: str) -> set[str]:
    """How a pattern is applied: one that is only matched need not be fit for searching."""
    module, _, variable = name.rpartition(".")
    own = inspect.getsource(importlib.import_module(module))
    # A public one is applied by others.
    sources = [own] if variable.startswith("_") else [own, *SOURCES]
    used = {word for one in sources for word in re.findall(rf"\b{variable}\.(\w+)\(", one)}
    # Passed to a function of its own, a pattern may be searched for.
    is_passed = any(re.search(rf"[(,]\s*{variable}\s*[,)]", one) for one in sources)
    return used | {"search"} if is_passed else used


@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - OWN))
def test_no_text_keeps_a_pattern_busy(name: str):
    """Matching and searching take linear time, or the text is bounded before."""
    if name in BOUNDED:
        assert getattr(importlib.import_module(name.rpartition(".")[0]), BOUNDED[name]) <= 1000
        return
    pattern, used = PATTERNS[name], uses(name)
    assert used
    for text in TEXTS:
        subject = text.encode() if isinstance(pattern.pattern, bytes) else text
        with processor_seconds(SECONDS_MAX):
            if "fullmatch" in used:
                pattern.fullmatch(subject)
            if "match" in used:
                pattern.match(subject)
            if used - {"fullmatch", "match"}:
                collections.deque(pattern.finditer(subject), maxlen=0)


def test_no_pattern_is_missed():
    """The language has patterns, and this finds them."""
    assert len(PATTERNS) > 30
    assert set(BOUNDED) <= set(PATTERNS)
    assert set(OWN) <= set(PATTERNS)


@pytest.mark.parametrize("tail", ["", "}}", " }} ${{ x", "}"])
@pytest.mark.parametrize("piece", ["${{", "${{ ", "$${{", "${{ a.b }", "}}", "${{ }}"])
def test_an_expression_is_searched_for_once(piece: str, tail: str):
    """However many are opened and never closed, compiling takes linear time."""
    with processor_seconds(SECONDS_MAX):
        interpolate.compile_text(piece * 100_000 + tail)

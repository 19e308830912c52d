"""Text that is shown and not obeyed: by a terminal, or by a CI runner that reads the log."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.views.lines import harmless

# As GitHub's runner looks for commands in a line: at its beginning, behind blanks, and anywhere.
_NEW = re.compile(r"\s*::([A-Za-z][^\s:]*)( .*)?::")
_OLD = re.compile(r"##\[([a-z][a-z-]*)[ \]]")


def is_obeyed(line: str) -> bool:
    return bool(_NEW.match(line) or _OLD.search(line))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::stop-commands::x", "\\u003a:stop-commands::x"),
        ("a\n \t::set-output name=a::b", "a\n \t\\u003a:set-output name=a::b"),
        ("x ##[add-mask]e", "x \\u0023#[add-mask]e"),
        ("##vso[task.setvariable a]b", "\\u0023#vso[task.setvariable a]b"),
    ],
)
def test_a_command_is_escaped(text: str, shown: str) -> None:
    """One sign is enough, and the reader still sees what stands there."""
    assert harmless(text) == shown


@pytest.mark.parametrize("text", ["echo ${path##[a-z]*}", "a::b::c", "std::vector", "::1", "# a"])
def test_what_is_no_command_stays(text: str) -> None:
    """Shell and C++ are readable as they are written."""
    assert harmless(text) == text


@given(st.text(alphabet=" \t\n:#[]abvso-=.", max_size=30))
def test_nothing_in_a_log_is_obeyed(text: str) -> None:
    """Whatever a document says, no line of it is a command, and JSON stays what it was."""
    assert not any(map(is_obeyed, harmless(text).split("\n")))
    assert json.loads(harmless(json.dumps(text))) == text

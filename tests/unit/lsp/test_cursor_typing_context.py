from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.lsp.cursor import typing_at
from fleetform.lsp.text import Text

CASES = {
    "fleets: |": (("fleets",), ""),
    "fleets: lo|": (("fleets",), "lo"),
    "fleets: [a, lo|": (("fleets", 1), "lo"),
    "fleets: [a, lo|]\nname: x": (("fleets", 1), "lo"),
    "volumes:\n  - |": (("volumes", 0), ""),
    "volumes:\n  - name: da|\n    path: /d": (("volumes", 0, "name"), "da"),
    "volumes: [{path: /d, name: |}]": (("volumes", 0, "name"), ""),
    'depends_on: "swe|': (("depends_on",), "swe"),
    "depends_on: ['swe|": (("depends_on", 0), "swe"),
    "commands:\n  - |-\n    echo ${{ sec|": (("commands", 0), "echo ${{ sec"),
}


@pytest.mark.parametrize("written", CASES)
def test_what_is_typed_is_known_with_its_field(written):
    """In each shape of YAML, also where the document ends in the middle of it."""
    before, _, after = written.rpartition("|")
    found = typing_at(Text(f"type: task\n{before}{after}"), len(f"type: task\n{before}"))
    assert (found.path, found.typed) == CASES[written]
    assert found.type == "task"


@pytest.mark.parametrize("before", ["fleets: [a]  # lo", "fle", "\n", "- "])
def test_where_no_value_stands_no_field_is_known(before):
    """In comments, in keys, in a list that is no document's."""
    found = typing_at(Text(before), len(before))
    assert found is None or not any(isinstance(step, str) for step in found.path)


def test_the_type_may_stand_behind_the_cursor():
    """And that of another document in the file is another matter."""
    source = "type: volume\n---\nfleets: [lo\ntype: task\n---\ntype: fleet\n"
    assert typing_at(Text(source), source.index("[lo") + 3).type == "task"


@pytest.mark.parametrize(
    ("typed", "inside"), [("${{ ", ""), ("a ${{ matrix.l", "matrix.l"), ("${{ a.b }} c", None)]
)
def test_an_open_expression_is_told_from_a_closed_one(typed, inside):
    """What stands behind the last `${{` that nothing closed."""
    source = f"type: task\ndescription: {typed}"
    assert typing_at(Text(source), len(source)).expression == inside


@given(st.text(max_size=80), st.data())
@settings(deadline=None)
def test_any_place_in_any_text_is_answered(source, data):
    """Nothing raises."""
    typing_at(Text(source), data.draw(st.integers(0, len(source))))

from __future__ import annotations

import pytest

from fleetform.views.plan.groups import nested, path_parts


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("priority", ["priority"]),
        ("env.LR", ["env", "LR"]),
        ("commands[3]", ["commands", 3]),
        ('files["a.py"].sha256', ["files", "a.py", "sha256"]),
        ('tags["a \\"b\\" ]"]', ["tags", 'a "b" ]']),
    ],
)
def test_a_path_is_taken_apart(path, parts):
    """Names, places, and quoted names with anything in them."""
    assert path_parts(path) == parts


def test_values_are_put_where_their_paths_say():
    """Two of one mapping stand in one mapping."""
    assert nested([("env.A", 1), ("env.B", 2), ("shell", "sh")]) == {
        "env": {"A": 1, "B": 2},
        "shell": "sh",
    }
    assert nested([("commands[1]", "x")]) == {"commands": {"1": "x"}}
    assert nested([("a", 1), ("a.b", 2)]) == {"a": 1}

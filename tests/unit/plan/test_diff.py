"""Field-level differences of canonical documents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.plan.diff import changed_fields, set_fields


def shown(before: dict[str, Any], after: dict[str, Any], kind: str = "run") -> dict[str, Any]:
    return {
        one.path: (
            one.before if one.before_set else "unset",
            one.after if one.after_set else "unset",
        )
        for one in changed_fields(kind, before, after)
    }


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a scalar": ({"priority": 1}, {"priority": 2}, {"priority": (1, 2)}),
    "a field that is set": ({}, {"shell": "bash"}, {"shell": ("unset", "bash")}),
    "a field that is taken away": ({"shell": "bash"}, {}, {"shell": ("bash", "unset")}),
    "null is a value": (
        {"resources": {"cpu": None}},
        {"resources": {}},
        {"resources.cpu": (None, "unset")},
    ),
    "true is not one": ({"rerun": 1}, {"rerun": True}, {"rerun": (1, True)}),
    "maps by key": (
        {"env": {"A": "1", "B": "2"}},
        {"env": {"B": "3", "C": "4"}},
        {"env.A": ("1", "unset"), "env.B": ("2", "3"), "env.C": ("unset", "4")},
    ),
    "a range is one value": (
        {"resources": {"cpu": {"min": 1, "max": None}}},
        {"resources": {"cpu": {"min": 2, "max": None}}},
        {"resources.cpu": ({"min": 1, "max": None}, {"min": 2, "max": None})},
    ),
    "an environment variable called min is no range": (
        {"env": {"min": "1"}},
        {"env": {"min": "2"}},
        {"env.min": ("1", "2")},
    ),
    "a line in the middle is one change": (
        {"commands": ["a", "b", "c"]},
        {"commands": ["a", "x", "b", "c"]},
        {"commands[1]": ("unset", "x")},
    ),
    "a line that goes": (
        {"commands": ["a", "b"]},
        {"commands": ["b"]},
        {"commands[0]": ("a", "unset")},
    ),
    "files by path": (
        {"files": [{"path": "a.py", "sha256": "1"}, {"path": "b.py", "sha256": "2"}]},
        {"files": [{"path": "b.py", "sha256": "3"}]},
        {
            'files["a.py"]': ({"path": "a.py", "sha256": "1"}, "unset"),
            'files["b.py"].sha256': ("2", "3"),
        },
    ),
    "dependencies by run": (
        {"depends_on": {"runs": [{"run": "a"}, {"run": "b"}]}},
        {"depends_on": {"runs": [{"run": "b", "when": "failed"}, {"run": "a"}]}},
        {'depends_on.runs["b"].when': ("unset", "failed")},
    ),
    "hosts by name": (
        {"ssh_config": {"hosts": [{"hostname": "a"}, {"hostname": "c", "port": 1}]}},
        {"ssh_config": {"hosts": [{"hostname": "b"}, {"hostname": "c", "port": 2}]}},
        {
            'ssh_config.hosts["a"]': ({"hostname": "a"}, "unset"),
            'ssh_config.hosts["b"]': ("unset", {"hostname": "b"}),
            'ssh_config.hosts["c"].port': (1, 2),
        },
    ),
    "a volume mounted twice has no name of its own": (
        {"volumes": [{"name": "v", "path": "/a"}, {"name": "v", "path": "/b"}]},
        {"volumes": [{"name": "v", "path": "/a"}, {"name": "v", "path": "/c"}]},
        {"volumes[1].path": ("/b", "/c")},
    ),
    "a key that is no word is quoted": (
        {"tags": {"a.b/c": "1"}},
        {"tags": {"a.b/c": "2"}},
        {'tags["a.b/c"]': ("1", "2")},
    ),
    "another type is a change as a whole": (
        {"retry": {"on": ["error"]}},
        {"retry": None},
        {"retry": ({"on": ["error"]}, None)},
    ),
    "mounts of several volumes by place": (
        {"volumes": [{"name": ["a", "b"], "path": "/x"}]},
        {"volumes": [{"name": ["a", "c"], "path": "/x"}]},
        {"volumes[0].name[1]": ("b", "c")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_shows(name: str) -> None:
    """Each case is shown by the paths that people would name."""
    before, after, expected = CASES[name]
    assert shown(before, after) == expected


@pytest.mark.parametrize(
    ("kind", "field", "field_class", "forces"),
    [
        ("run", "commands", "execution", True),
        ("run", "priority", "control", False),
        ("run", "description", "cosmetic", False),
        ("fleet", "sharing", "control", False),
        ("volume", "path", "execution", True),
        ("volume", "deletion_policy", "control", False),
    ],
)
def test_classes_come_from_the_table(kind: str, field: str, field_class: str, forces: bool) -> None:
    """Each field has the class of `spec.fields`, and forces what that says it forces."""
    (one,) = changed_fields(kind, {field: "a"}, {field: "b"})
    assert (one.field_class, one.forces) == (field_class, forces)


def test_user_keys_do_not_change_the_class() -> None:
    """An environment variable whose name has dots and brackets is still an `env` field."""
    (one,) = changed_fields("run", {"env": {}}, {"env": {"A].priority": "1"}})
    assert one.field_class == "execution"


def test_long_lists_are_compared_in_bounded_time() -> None:
    """Lists too long to align are compared place by place."""
    before = {"commands": [f"a{i}" for i in range(600)]}
    after = {"commands": [f"b{i}" for i in range(601)]}
    assert len(changed_fields("run", before, after)) == 601


def test_a_creation_shows_what_is_set() -> None:
    """A new document is one change a top-level field, without its type."""
    fields = set_fields("run", {"type": "task", "commands": ["a"], "priority": 3})
    assert [(one.path, one.after, one.before_set) for one in fields] == [
        ("commands", ["a"], False),
        ("priority", 3, False),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab.[", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "min", "path", "run"]), inner, max_size=3)
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["commands", "env", "files", "resources", "depends_on", "priority"]), JSON
)


@given(DOCUMENTS, DOCUMENTS)
def test_empty_exactly_when_equal(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Whatever documents hold, a difference is shown exactly when there is one."""
    order_only = _by_identity(before) == _by_identity(after)
    assert bool(changed_fields("run", before, after)) != order_only


def _by_identity(value: Any) -> Any:
    """A document with types told apart, and with lists of named things put in order."""
    if isinstance(value, dict):
        return {
            key: _sorted(inner, {"files": "path", "runs": "run"}.get(key, ""))
            for key, inner in value.items()
        }
    return _typed(value)


def _sorted(value: Any, identity: str) -> Any:
    named = identity and isinstance(value, list)
    if named and all(isinstance(one, dict) and identity in one for one in value):
        names = {repr(one[identity]) for one in value}
        if len(names) == len(value):
            return ("named", sorted(repr(_typed(one)) for one in value))
    return _typed(value)


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    return (type(value).__name__, value)

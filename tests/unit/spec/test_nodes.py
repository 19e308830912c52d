"""From the path of a field to its line and column."""

from __future__ import annotations

import pytest

from fleetform.spec.findings import Place
from fleetform.spec.nodes import Node, child, lookup, plain, spot
from fleetform.spec.syntax import read_documents

TEXT = """\
type: task
name: train
resources:
  gpu:
    name: A100
    count: 2
commands:
  - python a.py
  - [x, {y: 1}]
1: one
"""


@pytest.fixture
def node() -> Node:
    (root,), _ = read_documents(TEXT.encode(), "x.yaml")
    return root


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ((), (1, 1), (1, 1)),
        (("name",), (2, 7), (2, 1)),
        (("resources",), (3, 1), (3, 1)),
        (("resources", "gpu", "count"), (6, 12), (6, 5)),
        (("commands", 0), (8, 5), (8, 5)),
        (("commands", "0"), (8, 5), (8, 5)),
        (("commands", 1, 1, "y"), (9, 13), (9, 10)),
        ((1,), (10, 4), (10, 1)),
        # A field that is missing is shown at the key of what lacks it.
        (("resources", "gpu", "memory"), (4, 3), (4, 3)),
        (("commands", 7), (7, 1), (7, 1)),
        # What is read as a list of one and is none.
        (("name", 0), (2, 7), (2, 7)),
        (("nothing",), (1, 1), (1, 1)),
        # Names of types, which error locations contain, are passed over.
        (("resources", "gpu", "GpuFields", "count"), (6, 12), (6, 5)),
        (("name", "str"), (2, 1), (2, 1)),
    ],
)
def test_a_path_leads_to_its_place(
    node: Node, path: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
):
    """A path points at its value or its key, and as near as can be when it leads nowhere."""
    assert spot(node, path)[:2] == value
    assert spot(node, path, of="key")[:2] == key


def test_a_place_has_a_file_and_a_length(node: Node):
    """What findings need is complete."""
    assert lookup(node, ["resources", "gpu", "name"], file="a/x.yaml") == Place(
        "a/x.yaml", 5, 11, 4
    )
    assert lookup(node, ["name"], file="a/x.yaml", of="key") == Place("a/x.yaml", 2, 1, 4)


@pytest.mark.parametrize("step", ["²", "-1", -1, 99, "9" * 5000, ""])
def test_no_step_makes_it_fail(node: Node, step: str | int):
    """What is no index of a list leads nowhere."""
    found = child(node, "commands")
    assert found is not None
    assert child(found[1], step) is None


def test_keys_are_text(node: Node):
    """As plain values all keys are text, as JSON has it."""
    assert plain(node) == {
        "type": "task",
        "name": "train",
        "resources": {"gpu": {"name": "A100", "count": 2}},
        "commands": ["python a.py", ["x", {"y": 1}]],
        "1": "one",
    }


def test_nodes_can_be_compared_and_hashed(node: Node):
    """Nodes are values."""
    (again,), _ = read_documents(TEXT.encode(), "y.yaml")
    assert again == node
    assert hash(again) == hash(node)

"""A target means the same by its index as compared with each document."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.overlay.layers import Address, Index, address, matches, matches_nothing
from unit.spec.overlay.nodes import node

ADDRESSES = st.builds(
    Address,
    st.sampled_from(["run", "fleet"]),
    st.sampled_from(["task", "service", "fleet"]),
    st.sampled_from(["train", "train-1", "gpu-a", "gpu-b"]),
)
TARGETS = st.sampled_from(
    ["run/train", "task/train", "fleet/gpu-*", "*/*", "run/?rain", "fleet/gpu-[ab]", "r*/train-1"]
)


@given(st.lists(st.none() | ADDRESSES, max_size=8), TARGETS)
def test_an_index_finds_what_matches(addresses, target):
    """Every document, in order, and none that has no address."""
    expected = [
        number for number, one in enumerate(addresses) if one is not None and matches(target, one)
    ]
    assert Index(addresses).matching(target) == expected


def test_documents_say_what_they_are():
    """By type and name; a backend's name is its type, and what is none of ours has no address."""
    assert str(address(node("{type: task, name: train}"))) == "run/train"
    assert str(address(node("{type: aws}"))) == "backend/aws"
    assert address(node("{type: tusk, name: train}")) is None
    assert address(node("{name: train}")) is None
    assert address(node("[a]")) is None


def test_what_matches_nothing_is_told_what_there_is():
    """The nearest name, else some."""
    known = [Address("run", "task", f"run-{number}") for number in range(12)]
    assert matches_nothing("run/run-1l", known).advice.startswith("Did you mean `run/run-1")
    assert matches_nothing("volume/checkpoints", known).advice.endswith(", …")
    assert "Kind and name" in matches_nothing("volume/checkpoints", ()).advice

from __future__ import annotations

import pytest

from fleetform.spec.explain import Explanation, UnknownPath, below, complete, explain, kinds
from fleetform.spec.schema import MODELS


def known(path: str) -> Explanation:
    found = explain(path)
    assert isinstance(found, Explanation), found
    return found


def test_a_field_is_explained_with_all_there_is_to_know():
    """What it is, how it is written, what a change does, who acts on it, what is below it."""
    found = known("task.resources.gpu")
    assert found.description.startswith("GPUs as `NAME:MEMORY:COUNT`")
    assert "string" in found.spellings
    assert "A100:80GB:1..8" in found.examples
    assert (found.field_class, found.on_change) == ("execution", "rerun")
    assert found.change == "must re-run; blocked while the run is running"
    assert found.carried_out_by == "schedule"
    assert {"vendor", "name", "memory", "count"} <= {part.name for part in found.parts}


def test_choices_are_explained_one_by_one():
    """The sentences about choices stand in a list, and not in the description as well."""
    found = known("task.on_change")
    assert found.default == "hold"
    assert [choice.value for choice in found.choices] == ["hold", "restart", "after-finish"]
    assert all(choice.meaning for choice in found.choices)
    assert found.description == "What a plan does when a changed field makes a running run re-run."


def test_parts_of_every_spelling_are_below_a_field():
    """`volumes` may be texts or mappings; the mapping's fields are found through the list."""
    assert {"name", "path"} <= {part.name for part in known("task.volumes").parts}
    assert known("task.volumes[0].path") == known("task.volumes.path")


def test_a_second_spelling_is_not_listed():
    """`on_events` is read, and what is explained is `on`."""
    names = [part.name for part in known("task.retry").parts]
    assert "on" in names
    assert "on_events" not in names


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tsk.retry", UnknownPath("", "tsk", "task.retry", tuple(sorted(MODELS)))),
        ("task.gpus", ("task", "gpus", "task.resources.gpu")),
        ("task.retry.attempts", ("task.retry", "attempts", "task.retry.max_attempts")),
        ("task.resorces.gpu", ("task", "resorces", "task.resources")),
        ("task.name.first", ("task.name", "first", "")),
        ("", ("", "", "")),
        ("...", ("", "...", "")),
    ],
)
def test_a_path_that_leads_nowhere_is_told_as_far_as_it_leads(path, expected):
    """What was meant is found by likeness and by meaning."""
    found = explain(path)
    assert isinstance(found, UnknownPath)
    if isinstance(expected, tuple):
        assert (found.known, found.wrong, found.meant) == expected
    else:
        assert found == expected


@pytest.mark.parametrize("kind", MODELS)
def test_everything_below_a_kind_can_be_explained(kind):
    """Each path of the tree is a path that can be asked for, and says something."""
    paths = [path for path, _ in below(kind)]
    assert paths
    assert len(paths) == len(set(paths))
    for path in paths:
        found = known(path)
        assert found.type
        assert found.change


def test_a_kind_that_nothing_carries_out_says_so():
    """Whoever reads about services learns that a plan holds them, and why."""
    assert (
        "Services are not supported yet. A plan shows and blocks" in explain("service").description
    )
    assert "holds it" not in explain("task").description


def test_kinds_are_all_that_can_be_declared():
    """Every type of document is listed with a sentence."""
    assert [kind.name for kind in kinds()] == sorted(MODELS)
    assert all(kind.summary for kind in kinds())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("tas", {"task"}),
        ("task.resou", {"task.resources"}),
        ("task.resources.gpu.c", {"task.resources.gpu.count", "task.resources.gpu.compute_capability"}),
        ("nothing.", set()),
    ],
)  # fmt: skip
def test_paths_are_completed_up_to_the_next_dot(typed, expected):
    """What stands below what is typed, as far as the letters go."""
    assert set(complete(typed)) == expected

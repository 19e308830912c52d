from __future__ import annotations

import json

import pytest
from click.shell_completion import ShellComplete

from fleetform.cli.main import fleetform
from fleetform.spec.schema import MODELS


def test_all_types_are_listed(typed):
    """Without a field the types of documents are shown, one a line."""
    code, out, _ = typed("explain")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == sorted(MODELS)


def test_a_field_is_explained(typed):
    """The path comes first, then the words of its docstring and what a change does."""
    code, out, _ = typed("explain", "task.resources.gpu")
    assert code == 0
    assert out.splitlines()[0].startswith("task.resources.gpu  ")
    assert "must re-run; blocked while the run is running" in out
    assert "A100:80GB:1..8" in out


def test_what_is_below_is_shown_as_a_tree(typed):
    """With --recursive each part stands under what it is a part of."""
    _, out, _ = typed("explain", "task.resources", "--recursive")
    lines = out.splitlines()
    gpu = next(number for number, line in enumerate(lines) if line.startswith("gpu "))
    assert lines[gpu + 1].startswith("  vendor ")


@pytest.mark.parametrize("arguments", [[], ["task.retry"], ["task.retry", "--recursive"]])
def test_scripts_read_json(typed, arguments):
    """Every form has the same as JSON."""
    code, out, _ = typed("explain", *arguments, "--json")
    assert code == 0
    assert json.loads(out)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("tsk", "did you mean `task`?"),
        ("task.gpus", "did you mean `task.resources.gpu`?"),
        ("task.zzzzzz", "there is: `name`"),
        ("task.name.first", "`task.name` has no fields"),
    ],
)
def test_a_wrong_path_is_refused_with_the_right_one(typed, path, said):
    """What is near is named, and otherwise what there is."""
    code, _, err = typed("explain", path)
    assert code == 1
    assert said in err


def test_paths_are_completed_in_a_shell():
    """A shell is answered with what stands below the path that is typed."""
    completer = ShellComplete(fleetform, {}, "fleetform", "_FLEETFORM_COMPLETE")
    offered = completer.get_completions(["explain"], "task.resources.g")
    assert [item.value for item in offered] == ["task.resources.gpu"]

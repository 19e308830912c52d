"""What an environment's own file must say before anything else is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from applied import UID
from fleetform.app.problems import WorkspaceProblem
from fleetform.app.workspace import Workspace


@pytest.mark.parametrize(
    ("entry", "column", "detail", "help_"),
    [
        (
            "run/a",
            12,
            "needs two names: `from` and `to`.",
            "Write `{from: run/train, to: run/pretrain}`.",
        ),
        ("{from: run/old}", 12, "`to` is missing", "Add `to:`."),
        ("{from: run/old, too: run/new}", 28, "no field `too`", "Did you mean `to`?"),
        ("{from: old, to: run/new}", 19, "does not name its kind.", "Write for example `run/old`."),
    ],
)
def test_a_mistake_in_a_renaming_is_told_with_its_place(
    tmp_path: Path, entry: str, column: int, detail: str, help_: str
) -> None:
    """Which file, which line, what is wrong, and what to write: not that nothing can be read."""
    text = f"type: environment\nname: lab\nuid: {UID}\nmoved: [   {entry}]\n"
    (tmp_path / "environment.yaml").write_text(text)
    with pytest.raises(WorkspaceProblem, match="has 1 error") as refused:
        Workspace.open(str(tmp_path))
    (found,) = refused.value.findings
    assert (found.place.file, found.place.line, found.place.column) == (
        "environment.yaml",
        4,
        column,
    )
    assert detail in found.detail
    assert found.advice == help_


def test_a_base_is_not_called_wrong(tmp_path: Path) -> None:
    """An abstract environment is right as it is; there is only nothing to do with it."""
    (tmp_path / "environment.yaml").write_text("type: environment\nname: base\nabstract: true\n")
    with pytest.raises(WorkspaceProblem, match="other environments extend it") as refused:
        Workspace.open(str(tmp_path))
    assert "an environment that extends it" in refused.value.advice

"""Who manages an environment: one at a time, and known by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.app.managing import try_manage
from fleetform.app.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "environment.yaml").write_text(f"type: environment\nname: small\nuid: {'a' * 32}\n")
    return Workspace.open(str(tmp_path))


def test_one_manages(workspace: Workspace) -> None:
    """Of two that would manage an environment the second gets nothing until the first is done."""
    first = try_manage(workspace, who="anna", command="apply")
    assert first is not None
    assert try_manage(workspace, who="bert", command="serve") is None
    first.require()
    first.release()
    second = try_manage(workspace, who="bert", command="serve")
    assert second is not None
    assert second.holder.who == "bert"
    second.release()


def test_holder_is_named(workspace: Workspace) -> None:
    """While somebody manages, everybody can say who; afterwards nobody does."""
    assert workspace.manager() is None
    with try_manage(workspace, who="anna", command="apply") or pytest.fail("not free"):
        found = workspace.manager()
        assert found is not None
        assert (found.who, found.command, found.left_ms) == ("anna", "apply", None)
    assert workspace.manager() is None

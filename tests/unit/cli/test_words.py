from __future__ import annotations

import pytest

from fleetform.app.workspace import Workspace
from fleetform.cli.words import directory_words, step_doing, step_done
from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey


@pytest.mark.parametrize(
    ("verb", "doing", "done"),
    [
        ("fleet.make", "creating fleet/local", "fleet/local: created"),
        ("volume.forget", "releasing fleet/local", "fleet/local: released, its data is kept"),
        ("new.verb", "new.verb fleet/local", "fleet/local: new.verb"),
    ],
)
def test_a_step_has_words(verb, doing, done):
    """A verb without words of its own is shown as it is, and stops nothing."""
    step = Step("key", verb, ResourceKey("fleet", "local"))
    assert (step_doing(step), step_done(step)) == (doing, done)


def test_a_command_that_finds_the_default_environment_needs_no_folder(root, tmp_path, monkeypatch):
    """Commands that plan or apply never use it by themselves: they keep their -C."""
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    workspace = Workspace.open(str(root))
    assert directory_words(workspace, finds_default=True) == f" -C {root}"
    monkeypatch.setenv("FLEETFORM_ENVIRONMENT", str(root))
    assert directory_words(workspace, finds_default=True) == ""
    assert directory_words(workspace) == f" -C {root}"
    monkeypatch.chdir(root)
    assert directory_words(workspace) == ""

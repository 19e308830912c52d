from __future__ import annotations

from contextlib import closing

import applied
from fleetform.app.workspace import Workspace
from fleetform.cli.selection import Reread


def test_rows_are_read_again_only_after_a_commit(tmp_path, monkeypatch):
    """A look at an unchanged ledger returns the last answer; another process's commit is seen."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    root = applied.write_tree(
        tmp_path / "lab", applied.FLEET, "type: task\nname: train\ncommands: [echo]\n"
    )
    applied.enter(root)
    with closing(Workspace.open(str(root)).reader()) as reader:
        answers = []

        def read():
            answers.append([one.run.state.value for one in reader.read_runs()])
            return answers[-1]

        again = Reread(reader, read)
        assert again() is again() is again()
        assert len(answers) == 1
        applied.run_all(root, exit_codes={})
        assert again() == ["done"]
        assert len(answers) == 2

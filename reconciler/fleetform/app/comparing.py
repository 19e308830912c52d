"""
What two names stand for that people compare: commits, environments, runs.

A folder with an `environment.yaml` is an environment, a name that the ledger has a run of is
that run, anything else a revision of the repository around the environment.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.problems import WorkspaceProblem
from fleetform.app.trees import TreeLoader
from fleetform.app.workspace import ENVIRONMENT_FILE
from fleetform.source.export import CommitUnreadable, export_commit
from fleetform.spec.desired import ResourceKey
from fleetform.spec.tree import load_tree
from fleetform.views.difference import RunSide

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import Desired, Loaded

__all__ = ["TreeSide", "find_run", "open_tree"]


@dataclass(frozen=True, slots=True)
class TreeSide:
    """A declaration and what people call it; `errors` counts findings that keep parts out."""

    label: str
    desired: Desired
    errors: int


@contextlib.contextmanager
def open_tree(workspace: Workspace, named: str | None) -> Iterator[TreeSide]:
    """
    Read the tree that `named` stands for; None is the environment's as it is on disk.

    Raises:
        WorkspaceProblem: It names nothing, or cannot be read.
    """
    if named is None:
        yield _side(TreeLoader(workspace.root).load(), "as it is on disk")
    elif (Path(named) / ENVIRONMENT_FILE).is_file():
        yield _side(TreeLoader(Path(named).absolute()).load(), named)
    else:
        with tempfile.TemporaryDirectory(prefix="fleetform-") as folder:
            try:
                commit, root = export_commit(workspace.root, named, Path(folder))
            except CommitUnreadable as problem:
                raise WorkspaceProblem(str(problem), problem.advice) from problem
            if not (root / ENVIRONMENT_FILE).is_file():
                raise WorkspaceProblem(
                    f"commit {commit[:12]} has no {ENVIRONMENT_FILE} in this folder",
                    "the environment was created later, or was in another folder",
                )
            label = commit[:12] if commit.startswith(named) else f"{named} ({commit[:12]})"
            # Without a cache: nobody reads this folder again.
            yield _side(load_tree(root), label)


def _side(loaded: Loaded, label: str) -> TreeSide:
    if loaded.desired is None:
        raise WorkspaceProblem(
            f"{label}: the environment cannot be read", "`fleetform validate` shows what is wrong"
        )
    return TreeSide(label, loaded.desired, len(loaded.errors))


def find_run(reader: Reader, named: str) -> RunSide | None:
    """Return the run `named` stands for, `train` or `run/train`, or None."""
    name = named.removeprefix("run/")
    histories = [one for one in reader.read_runs([name]) if one.run.name == name]
    if not histories:
        return None
    row = reader.read_live().resources.get(ResourceKey("run", name))
    # Of a run whose place another has taken, the row is the other's.
    document = json.loads(row.document) if row is not None else {}
    return RunSide(histories[-1], document)

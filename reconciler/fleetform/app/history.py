"""Finds what was planned and applied."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.problems import WorkspaceProblem
from fleetform.app.workspace import ENVIRONMENT_FILE, TreeLoader
from fleetform.model.plan import Plan
from fleetform.plan.serialize import load
from fleetform.source.export import CommitUnreadable, export_commit
from fleetform.spec.desired import ResourceKey
from fleetform.spec.tree import load_tree
from fleetform.views.difference import RunSide
from fleetform.views.history import Past

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Change, Plan
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import Desired, Loaded


PAST_MAX = 500
"""Applies that a look back goes through; each means reading a plan."""


def find_plan(reader: Reader, named: str) -> tuple[str, Plan]:
    """
    Find a plan of the ledger by its digest, or the beginning of it; `last` is the one made last.

    Returns:
        The digest and the plan.

    Raises:
        WorkspaceProblem: There is none, there are several, or it cannot be read.
    """
    digest = _digest(reader, named)
    body = reader.read_plan(digest)
    assert body is not None, "its digest was just read"
    try:
        return digest, load(body)
    except ValueError as error:
        raise WorkspaceProblem(f"plan {digest[:12]} cannot be read: {error}") from error


def _digest(reader: Reader, named: str) -> str:
    if named == "last":
        entries = reader.read_history(limit=1)
        if not entries:
            raise WorkspaceProblem("there is no plan yet", "`fleetform plan` creates one")
        return entries[0].digest
    is_digest = len(named) >= _DIGEST_MIN and all(one in "0123456789abcdef" for one in named)
    found = reader.find_digests(named) if is_digest else ()
    if len(found) == 1:
        return found[0]
    if found:
        raise WorkspaceProblem(
            f"more than one plan begins with `{named}`", "write more digits of it"
        )
    raise WorkspaceProblem(
        f"there is no plan `{named}`",
        "`fleetform history` lists them; write at least four digits of one, `last`, or a file that"
        " `plan --out` wrote",
    )


_DIGEST_MIN = 4


def past_of(reader: Reader, key: ResourceKey) -> tuple[Past, ...]:
    """Follow a resource back through the plans that changed it, also under earlier names."""
    found: list[Past] = []
    before: int | None = None
    while key is not None:
        earlier = None
        for past in _touches(reader, key):
            # What another resource did under a name that this one took later is not its past.
            if before is not None and past.entry.at_ms > before:
                continue
            found.append(past)
            if past.change.moved_from and str(past.change.key) == str(key):
                earlier = key._replace(name=past.change.moved_from)
                before = past.entry.at_ms
                break
        if earlier is None:
            break
        key = earlier
    return tuple(found)


def _touches(reader: Reader, key: ResourceKey) -> Iterator[Past]:
    for touch in reader.read_touches(key, limit=PAST_MAX):
        try:
            plan = load(touch.body)
        except ValueError:
            continue  # Made by a release that wrote plans otherwise: its row still stands.
        change = next((one for one in plan.changes if _is_of(one, key)), None)
        if change is not None:
            yield Past(touch.entry, change)


def _is_of(change: Change, key: ResourceKey) -> bool:
    return change.key == key or (
        change.key.kind == key.kind and key.name in {change.replaces, change.moved_from} - {""}
    )


# What two names stand for that people compare: commits, environments, runs.
# A folder with an `environment.yaml` is an environment, a name that the ledger has a run of is
# that run, anything else a revision of the repository around the environment.


@dataclass(frozen=True, slots=True)
class TreeSide:
    """A declaration and what people call it; `errors` counts findings that keep parts out."""

    label: str
    desired: Desired
    errors: int


@contextlib.contextmanager
def open_tree(workspace: Workspace, named: str | None) -> Iterator[TreeSide]:
    """
    Read the configuration that `named` stands for; None is the environment's as it is on disk.

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
            # Without a cache: this folder is not read again.
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
    document = row.parsed if row is not None else {}
    return RunSide(histories[-1], document)

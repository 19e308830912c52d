"""
Edits that would be written and of which nothing would come.

`ignore:` keeps what is there, whatever is declared; `initial:` counts when something is made or runs,
and not between. Whoever asks for such a value by a command expects it to hold: they are told what
keeps it from that, and nothing is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from fleetform.app.problems import EditProblem
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.spec.desired import Declared, Desired

__all__ = ["refuse_inert"]

Steps = tuple[str | int, ...]


def refuse_inert(
    workspace: Workspace, desired: Desired, wishes: Iterable[tuple[ResourceKey, Steps]]
) -> None:
    """
    Return where each wish has an effect, or will have one when something is made.

    Args:
        workspace: Its ledger knows what exists already: for what is not, everything counts.
        desired: The tree as it would be with the wishes.
        wishes: Documents and the paths in them that are to say something else.

    Raises:
        EditProblem: One has none; says why, and what to do.
    """
    by_key: dict[ResourceKey, list[Steps]] = {}
    for key, path in wishes:
        by_key.setdefault(key, []).append(path)
    for key, paths in by_key.items():
        declared = _declared(desired, key)
        if declared is None:
            continue
        for field in ("ignore", "initial"):
            patterns = declared.document.get(field, ())
            idle = [path for path in paths if any(_covers(one, path) for one in patterns)]
            # What else changes may have it made anew, and then `initial:` counts.
            is_refused = idle if field == "ignore" else idle and len(idle) == len(paths)
            if is_refused and _is_there(workspace, key):
                raise _problem(key, field, patterns, idle[0])


def _declared(desired: Desired, key: ResourceKey) -> Declared | None:
    """Of a sweep one element: what it overlooks is said once for all."""
    for table in (desired.resources, {k: one.declared for k, one in desired.beyond.items()}):
        for one in table.values():
            if one.key == key or (one.key.kind == key.kind and one.parent == key.name):
                return one
    return None


def _covers(pattern: str, path: Steps) -> bool:
    """Whether all that is said at the path is below what the pattern names."""
    steps = pattern.split(".")
    said = list(map(str, path))
    return len(said) >= len(steps) and all(map(fnmatchcase, said, steps))


def _is_there(workspace: Workspace, key: ResourceKey) -> bool:
    reader = workspace.reader()
    if reader is None:
        return False
    with contextlib.closing(reader):
        rows = reader.read_live().resources
    return any(
        not row.archived and (one == key or (one.kind == key.kind and row.parent == key.name))
        for one, row in rows.items()
    )


def _problem(key: ResourceKey, field: str, patterns: Sequence[str], path: Steps) -> EditProblem:
    said = ".".join(map(str, path))
    why = {
        "ignore": "its actual value stays",
        "initial": "a new value takes effect only when the resource is created or run the next time",
    }[field]
    out = (
        f"run `fleetform set {key} {field}-`, so that the change has an effect"
        if len(patterns) == 1
        else f"remove it from `{field}:` in the document, so that the change has an effect"
    )
    others = {
        "ignore": "",
        "initial": f"; or edit the document by hand, and run `fleetform apply --replace {key}`",
    }[field]
    return EditProblem(
        f"nothing was written, because `{said}` would have no effect: {key} lists it in `{field}:`,"
        f" so {why}",
        out + others,
    )

"""
From a path that was typed to everything that is wrong there.

A folder is an environment, and all of it is checked. A file is checked as a part of its
environment, so that what it refers to is known; of the findings only its own are kept. A file that
belongs to no environment is checked by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fleetform.app.workspace import TreeLoader, find_root, load_alone
from fleetform.source.tree import working_tree
from fleetform.spec.desired import FILE_NAME, Desired
from fleetform.spec.findings import SUMMARIES, Finding, Level, Place
from fleetform.spec.tree.walk import read_file, walk
from fleetform.views.findings import Report


def check(path: str | None, *, strict: bool = False, list_files: bool = False) -> Report:
    """
    Check the configuration at `path` or around this folder, or the file at `path`.

    Args:
        path: A folder with `environment.yaml`, or a file; None: look upward from here.
        strict: Warnings fail the check too.
        list_files: Name the files that were checked as well. That looks through the folder once
            more, so it is left out by default.

    Raises:
        WorkspaceProblem: There is no environment.
    """
    if path is not None and Path(path).is_file():
        return _check_file(Path(path), strict=strict, list_files=list_files)
    # Not through a workspace: that needs an `environment.yaml` without errors.
    root = find_root(path)
    loaded = TreeLoader(root).load()
    assert loaded.desired is not None or loaded.findings, (
        "a configuration that cannot be read has findings"
    )
    return Report(
        (*_without_fleet(loaded.desired), *loaded.findings),
        loaded.documents_count,
        loaded.files_count,
        (FILE_NAME, *walk(root).files) if list_files else (),
        _folder(root),
        strict,
    )


def _without_fleet(desired: Desired | None) -> Iterator[Finding]:
    """Warn of runs that no fleet can ever take, because none is declared."""
    if desired is None or desired.unread:
        return
    kinds = {key.kind for key in (*desired.resources, *desired.beyond, *desired.broken)}
    if "run" in kinds and "fleet" not in kinds:
        yield Finding(
            Level.WARNING,
            "no-fleet",
            SUMMARIES["no-fleet"],
            Place(FILE_NAME),
            "The configuration declares runs and no fleet, so no run can start.",
            "Add a document with `type: fleet`, `name: local` and `local: true`: it runs them on this"
            " machine. `fleetform explain fleet` shows the other fields.",
        )


def _check_file(path: Path, *, strict: bool, list_files: bool) -> Report:
    # Links above the file are followed as git does; the file itself is what was named.
    file = path.parent.resolve() / path.name
    found = _as_part(file) or _by_itself(file)
    return Report(
        found.findings,
        found.documents_count,
        1,
        (found.name,) if list_files else (),
        _folder(found.root),
        strict,
    )


class _Checked(NamedTuple):
    """One file of a tree: its name there, and what was found in it."""

    root: Path
    name: str
    findings: tuple[Finding, ...]
    documents_count: int


def _as_part(file: Path) -> _Checked | None:
    """The file within its environment; None when it belongs to none."""
    root = next((above for above in file.parents if (above / FILE_NAME).is_file()), None)
    if root is None:
        return None
    name = file.relative_to(root).as_posix()
    # Hidden folders, other endings and links that lead out are not read as documents.
    if name not in {FILE_NAME, *walk(root).files}:
        return None
    findings = tuple(one for one in TreeLoader(root).load().findings if one.place.file == name)
    # A whole configuration that is known from before is checked without a parser.
    from fleetform.spec.syntax import read_documents

    data = read_file(root, name)
    documents, _ = read_documents(data, name) if isinstance(data, bytes) else ([], ())
    return _Checked(root, name, findings, len(documents))


def _by_itself(file: Path) -> _Checked:
    # The name of a link means its target; the loader itself follows none out of a configuration.
    file = file.resolve()
    # What it names may lie anywhere in its repository, and nowhere else.
    root = working_tree(file.parent) or file.parent
    name = file.relative_to(root).as_posix()
    loaded = load_alone(root, name)
    return _Checked(root, name, loaded.findings, loaded.documents_count)


def _folder(root: Path) -> str:
    """The tree as seen from the root of its repository; empty outside of git."""
    real = root.resolve()
    top = working_tree(real)
    folder = real.relative_to(top).as_posix() if top is not None else "."
    return "" if folder == "." else folder

"""
Mounts in each other's way, and in that of the run's files.

One mount inside another is right, and made after it. But nothing can be made inside of what may
only be read, and no link inside of a volume: it would lie there for all who mount it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue, Entry

_FIELDS = frozenset({"files", "volumes", ""})
"""What is compared: a document with an error in one of these is not judged."""


def check_mounts(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Each path that is in the way of another is told once."""
    for entry in catalogue.of_kind("run"):
        if not entry.wrong.isdisjoint(_FIELDS):
            continue
        told: set[str] = set()
        for document in entry.documents:
            for problem in _mount_problems(document.get("volumes", ()), document.get("files", ())):
                if problem.detail not in told:
                    yield entry, problem
                told.add(problem.detail)


def _mount_problems(
    mounts: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, Any]]
) -> Iterator[Problem]:
    for outer in mounts:
        for inner in mounts:
            if inner["path"] != outer["path"] and _is_inside(inner["path"], outer["path"]):
                yield from _nested_mounts(inner, outer)
    # Absolute paths are the host's or the container's; files lie in the working directory.
    paths = {mount["path"] for mount in mounts if not mount["path"].startswith("/")}
    for path in sorted(paths):
        in_the_way = next((one["path"] for one in files if _touch(one["path"], path)), None)
        if in_the_way is not None:
            yield Problem(
                "mount-in-the-way",
                ("volumes",),
                f"`files` puts `{in_the_way}` where a volume is mounted, at `{path}`.",
                "Mount the volume elsewhere, or put the file elsewhere.",
                word=_word(path, mounts),
            )


def _nested_mounts(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> Iterator[Problem]:
    if outer.get("read_only"):
        yield Problem(
            "mount-in-the-way",
            ("volumes",),
            f"`{inner['path']}` is inside of `{outer['path']}`, which is read-only: the mount works only if that directory already exists.",
            "Mount it elsewhere.",
            level=Level.WARNING,
            word=_word(inner["path"], [inner]),
        )
    elif not inner["path"].startswith("/"):
        yield Problem(
            "mount-in-the-way",
            ("volumes",),
            f"`{inner['path']}` would be a link inside of the volume at `{outer['path']}`, visible to all runs that mount it.",
            "Mount it beside the other, or at an absolute path.",
            word=_word(inner["path"], [inner]),
        )


def _is_inside(path: str, folder: str) -> bool:
    return folder == "/" or path.startswith(f"{folder}/")


def _touch(file: str, mount: str) -> bool:
    file, mount = posixpath.normpath(file), posixpath.normpath(mount)
    return file == mount or _is_inside(file, mount) or _is_inside(mount, file)


def _word(path: str, mounts: Sequence[Mapping[str, Any]]) -> str:
    """What to point at: the name of what is mounted there, which begins its text."""
    mount = next(mount for mount in mounts if mount["path"] == path)
    name = mount.get("name", mount.get("instance_path", ""))
    return name if isinstance(name, str) else name[0]

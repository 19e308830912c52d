"""
The commit that a tree is at, from `git` itself.

Git runs while documents are being read, so that it costs next to nothing; and where no `.git`
is anywhere above the configuration, it is not started at all. Programs that the repository's configuration
names are not run (`untrusted_git`), objects that are missing are not fetched, nothing is asked for at
the terminal, and nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.spec.tree.untrusted_git import (
    GIT,
    read_config,
    safe_environment,
    without_filters,
)

if TYPE_CHECKING:
    import subprocess

_STATUS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--", ".")
# Longer than a cold status of a large repository on a slow disk. A commit that comes later is
# not worth waiting for: it is shown, and decides nothing.
_ANSWER_SECONDS = 10


class Commit:
    """Asks when it is made, answers when it is read."""

    def __init__(self, root: Path, bases: Sequence[str] = ()) -> None:
        """`bases` are folders outside of `root` that the tree is made of too, relative to it."""
        self.bases = tuple(bases)
        self._process = _start(root, bases) if _has_repository(root) else None

    def read(self) -> str:
        """The commit, with `+dirty` if files of the tree differ from it; empty outside git."""
        process, self._process = self._process, None
        if process is None:
            return ""
        import subprocess

        try:
            output, _ = process.communicate(timeout=_ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return ""
        return _parse(output) if process.returncode == 0 else ""

    def drop(self) -> None:
        """Nobody wants to know any more; after `read` this does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def is_ancestor(root: Path, commit: str, of: str) -> bool:
    """
    Tell whether a commit is one that another was made from, by the repository around `root`.

    False where that is not known: a commit is not in this clone, or git does not answer.
    """
    asked = ("merge-base", "--is-ancestor", "--end-of-options", commit, of)
    return commit != of and _ask(root, *asked) is not None


def count_ahead(root: Path, commit: str, of: str) -> int | None:
    """Count the commits from `commit` to `of`; None where `of` does not follow on `commit`."""
    if commit == of:
        return 0
    if not is_ancestor(root, commit, of):
        return None
    counted = _ask(root, "rev-list", "--count", "--end-of-options", f"{commit}..{of}")
    return None if counted is None else int(counted)


def _ask(root: Path, *arguments: str) -> str | None:
    """Return what git prints; None where it fails or does not answer."""
    import subprocess

    try:
        asked = subprocess.run(
            [*GIT, *arguments],
            cwd=root,
            env=safe_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_ANSWER_SECONDS,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout if asked.returncode == 0 else None


def _has_repository(root: Path) -> bool:
    folder = root.resolve()
    return any(os.path.lexists(f"{above}/.git") for above in (folder, *folder.parents))


def _start(root: Path, bases: Sequence[str]) -> subprocess.Popen[bytes] | None:
    import subprocess

    environment = safe_environment()
    try:
        options = without_filters(read_config(root, environment))
        return subprocess.Popen(
            [*GIT, *options, *_STATUS, *bases],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return None


def _parse(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    commit = ""
    is_dirty = False
    for line in lines:
        if line.startswith("# branch.oid "):
            commit = line.removeprefix("# branch.oid ").strip()
        elif not line.startswith("#"):
            is_dirty = True
    if not commit or commit == "(initial)":
        return ""
    return commit + "+dirty" * is_dirty

"""
The commit that a tree is at, from `git` itself.

Git runs while documents are being read, so that it costs next to nothing; and where no `.git`
is anywhere above the tree, it is not started at all. A repository may come from anybody, and
its configuration can name programs: hooks, the file system monitor and the repository's own
filters are turned off, objects that are missing are not fetched, nothing is asked for at the
terminal, and nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_GIT = ("git", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
_STATUS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--", ".")
# Answers in milliseconds, from files; one that is a pipe would never end.
_FILTERS = ("config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\.")
_FILTERS_TIMEOUT_SECONDS = 2
# A filter is run for each file whose time stamp has changed. Those of the machine and of the
# person, such as LFS, are their own.
_FOREIGN = frozenset({"local", "worktree"})
# Longer than a cold status of a large repository on a slow disk. A commit that comes later is
# not worth waiting for: it is shown, and decides nothing.
_TIMEOUT_SECONDS = 10


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
            output, _ = process.communicate(timeout=_TIMEOUT_SECONDS)
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

    False where nobody knows: a commit is not in this clone, or git does not answer.
    """
    import subprocess

    try:
        asked = subprocess.run(
            [*_GIT, "merge-base", "--is-ancestor", "--end-of-options", commit, of],
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return commit != of and asked.returncode == 0


def _has_repository(root: Path) -> bool:
    folder = root.resolve()
    return any(os.path.lexists(f"{above}/.git") for above in (folder, *folder.parents))


def _start(root: Path, bases: Sequence[str]) -> subprocess.Popen[bytes] | None:
    import subprocess

    environment = _environment()
    try:
        asked = subprocess.run(
            [*_GIT, *_FILTERS],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_FILTERS_TIMEOUT_SECONDS,
            check=False,
        )
        return subprocess.Popen(
            [*_GIT, *_without_filters(asked.stdout), *_STATUS, *bases],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _environment() -> dict[str, str]:
    # GIT_DIR and the like, set by a hook that runs us, would speak of another repository.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        # A partial clone fetches what it lacks, by a program that its configuration names. Git
        # before 2.45 does not know the first; no protocol is left to it then.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "LC_ALL": "C",
    }


def _without_filters(output: bytes) -> list[str]:
    """
    Options that take the programs out of each filter that the repository itself brings.

    A name with an equals sign would end at it where it is given as an option, so it cannot be
    turned off, and such a repository is asked nothing.

    Raises:
        ValueError: There is one of these.
    """
    words = output.decode("utf-8", "surrogateescape").split("\0")
    names = {
        key.rpartition(".")[0]
        for scope, key in zip(words[::2], words[1::2], strict=False)
        if scope in _FOREIGN
    }
    if any("=" in name for name in names):
        raise ValueError("a filter that cannot be turned off")
    return [
        option
        for name in sorted(names)
        for said in ("clean=", "process=", "smudge=", "required=false")
        for option in ("-c", f"{name}.{said}")
    ]


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

"""
The commit that a tree is at, from `git` itself.

Git runs while documents are being read, so that it costs next to nothing; and where no `.git`
is anywhere above the tree, it is not started at all. A repository may come from anybody, and
its configuration can name programs: hooks and the file system monitor are turned off, nothing
is asked for at the terminal, and nothing is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_ARGUMENTS = (
    "git", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "--no-optional-locks",
    "status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--", ".",
)  # fmt: skip
# Longer than a cold status of a large repository on a slow disk. A commit that comes later is
# not worth waiting for: it is shown, and decides nothing.
_TIMEOUT_SECONDS = 10


class Commit:
    """Asks when it is made, answers when it is read."""

    def __init__(self, root: Path) -> None:
        self._process = _start(root) if _has_repository(root) else None

    def read(self) -> str:
        """The commit, with `+dirty` if files of the tree differ from it; empty outside git."""
        if self._process is None:
            return ""
        import subprocess

        try:
            output, _ = self._process.communicate(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return ""
        return _parse(output) if self._process.returncode == 0 else ""


def _has_repository(root: Path) -> bool:
    folder = root.resolve()
    return any(os.path.lexists(f"{above}/.git") for above in (folder, *folder.parents))


def _start(root: Path) -> subprocess.Popen[bytes] | None:
    import subprocess

    # GIT_DIR and the like, set by a hook that runs us, would speak of another repository.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.Popen(
            _ARGUMENTS,
            cwd=root,
            env=kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
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

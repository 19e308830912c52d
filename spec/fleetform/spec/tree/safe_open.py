"""
Opening what lies inside of a tree, and nothing else.

Whether a path stays inside can only be said of one moment: a folder on the way may be a link in
the next. So the way is gone from the root, a step at a time by descriptors, and no step follows
a link. Where there is one that stays inside, the way to what it means is gone the same.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["Inside", "LeadsOutError", "is_file", "is_folder", "open_below"]


_FLAGS = os.O_RDONLY | os.O_CLOEXEC


class LeadsOutError(Exception):
    """A path that leads out of the tree through a link."""


def open_below(root: Path, path: str) -> int:
    """
    Open what lies at `path` below `root`, for reading; each `../` it begins with is a root above.

    Raises:
        LeadsOutError: A link on the way leads out of the tree.
        OSError: It cannot be opened.
    """
    # The folders of a base lie beside the environment's own, which whoever names them has judged.
    while path.startswith("../"):
        root, path = root / "..", path[3:]
    if ".." in path.split("/"):
        raise LeadsOutError
    try:
        return _open_plainly(root, path)
    except OSError as exc:
        # What the system says of a link where none may be; FreeBSD has EMLINK for it.
        if exc.errno not in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            raise
    real_root = os.path.realpath(root)
    real = os.path.realpath(root / path)
    if not real.startswith(real_root + os.sep):
        raise LeadsOutError
    return _open_plainly(Path(real_root), os.path.relpath(real, real_root))


def _open_plainly(root: Path, path: str) -> int:
    """Open step by step without following a link, so that nothing can be swapped on the way."""
    *folders, name = path.split("/")
    descriptor = _open_folder(root, folders)
    try:
        return _open_in(descriptor, name)
    finally:
        os.close(descriptor)


def _open_folder(root: Path, folders: Sequence[str]) -> int:
    descriptor = os.open(root, _FLAGS | os.O_DIRECTORY)
    for folder in folders:
        above = descriptor
        try:
            descriptor = os.open(folder, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return descriptor


def _open_in(descriptor: int, name: str) -> int:
    # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
    return os.open(name, _FLAGS | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=descriptor)


class Inside:
    """
    Opens files of one configuration in the same folder, one after the other.

    The way to their folder is gone once for all of them: a descriptor of a folder means that
    folder, whatever its name leads to later.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: str | None = None
        self._descriptor = -1

    def open(self, path: str) -> int:
        """
        Open the file at `path`; as `open_below`.

        Raises:
            LeadsOutError: A link on the way leads out of the tree.
            OSError: It cannot be opened.
        """
        folder, _, name = path.rpartition("/")
        if ".." in path.split("/"):
            return open_below(self._root, path)
        if folder != self._folder:
            self.close()
        try:
            if self._folder is None:
                self._descriptor = _open_folder(self._root, folder.split("/") if folder else [])
                self._folder = folder
            return _open_in(self._descriptor, name)
        except OSError:
            # A link, most likely. Where it leads is looked at step by step.
            return open_below(self._root, path)

    def close(self) -> None:
        """Give the folder back."""
        if self._folder is not None:
            os.close(self._descriptor)
            self._folder = None


def is_file(path: Path) -> bool:
    """
    Whether a plain file lies at `path`, links followed.

    Where one may not even look the answer is yes: whoever opens it then is told why it cannot
    be, and nothing is taken for absent that is only hidden.
    """
    return _has_mode(path, stat.S_ISREG)


def is_folder(path: Path) -> bool:
    """Whether a folder lies at `path`, with the same answer where one may not look."""
    return _has_mode(path, stat.S_ISDIR)


def _has_mode(path: Path, is_it: Callable[[int], bool]) -> bool:
    try:
        return is_it(path.stat().st_mode)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False

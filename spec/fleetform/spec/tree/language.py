"""
Which version of the language this is: the same for two processes that read alike.

A reading that is kept is only good for the code that made it, and while that code is being
written its version number says nothing. So the sources are what counts: of this package, and of
the libraries that take part in reading. They are looked at and not read: reading a hundred and fifty
files takes as long as all the rest of a small tree.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

__all__ = ["language_version"]

# What turns bytes into events and values into models. Their files are not read: an installer
# makes the folder anew, and never writes into a file of it.
_LIBRARIES = ("yaml", "pydantic", "pydantic_core")
_PACKAGE = Path(__file__).parents[1]


@functools.cache
def language_version() -> str:
    """
    A digest in hex over all that a reading depends on besides the tree.

    Asked once a process, before the first reading: whoever edits the code of a process that runs
    has it written down under the version that the process is.
    """
    digest = hashlib.sha256(sys.version.encode())
    sources = sorted(_sources(_PACKAGE))
    # When a file was changed last is the system's own word, which no editor and no copy can set. Only
    # where all of them say the same, as in some images, it says nothing.
    is_telling = len({seen.st_ctime_ns for _, _, seen in sources}) > 1
    for name, path, seen in sources:
        if is_telling:
            look = (
                f"{seen.st_dev} {seen.st_ino} {seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}"
            )
        else:
            look = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        digest.update(f"\n{name} {look}".encode())
    for library in _LIBRARIES:
        digest.update(f"\n{library} {_library_look(library)}".encode())
    return digest.hexdigest()


def _sources(folder: Path | str, prefix: str = "") -> Iterator[tuple[str, str, os.stat_result]]:
    """Each source by its name in the package, its path, and what the system says of it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield prefix + entry.name, entry.path, entry.stat()
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path, f"{prefix}{entry.name}/")


def _library_look(name: str) -> str:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "none"
    looks = (path.stat() for path in (Path(spec.origin), Path(spec.origin).parent))
    return f"{spec.origin} " + " ".join(f"{one.st_ino} {one.st_ctime_ns}" for one in looks)

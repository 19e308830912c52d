"""
Which version of the language this is: the same for two processes that read alike.

A reading that is kept is only good for the code that made it, and while that code is being
written its version number says nothing. So the sources are what counts: of this package, and of
the libraries that take part in reading.
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
    for name, content in sorted(_sources(_PACKAGE)):
        digest.update(f"\n{name}\n{len(content)}\n".encode())
        digest.update(content)
    for name in _LIBRARIES:
        digest.update(f"\n{name} {_look(name)}".encode())
    return digest.hexdigest()


def _sources(package: Path) -> Iterator[tuple[str, bytes]]:
    # Read, and not looked at: three milliseconds, against a wrong reading after an editor that
    # keeps times, or an image that is built with all of them the same.
    for folder, folders, files in os.walk(package):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(".py"):
                path = f"{folder}/{name}"
                with open(path, "rb") as file:  # noqa: PTH123  # Four times as fast as Path's.
                    yield path.removeprefix(str(package)), file.read()


def _look(name: str) -> str:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "none"
    looks = (path.stat() for path in (Path(spec.origin), Path(spec.origin).parent))
    return f"{spec.origin} " + " ".join(f"{one.st_ino} {one.st_ctime_ns}" for one in looks)

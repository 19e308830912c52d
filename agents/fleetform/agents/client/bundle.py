"""
The agent as one file that any Python from 3.9 on can run: `python -I -S FILE …`.

The archive holds `fleetform/agents` with the protocol and the host's side, and nothing else
of the product. The same sources give the same bytes on every machine, so the file is named
by their digest and is never changed: a host that has it need not be sent it again, and an
agent that runs from it keeps what it began with when the product is upgraded.

An agent of this machine runs on the Python that runs now. Its archive also holds what this Python has
compiled already: compiling the sources takes as long as all else that an agent does until it listens.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from fleetform import agents

_ROOMS = ("protocol", "host")

# Run by the archive itself; `main` returns the exit status.
_MAIN = b"""\
from fleetform.agents.host.main import main

raise SystemExit(main())
"""

# The oldest date a zip archive can hold: a real one would change the digest.
_DATE = (1980, 1, 1, 0, 0, 0)
_UNIX = 3

# The head of compiled code that is used as it is, whatever the date of its source (PEP 552).
_UNCHECKED = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")

_OTHERS = 0o077
"""All that a mode can give to group and others; `mkstemp` makes files without any of it."""


def make_bundle(folder: Path, *, for_this_python: bool = False) -> Path:
    """
    Return the agent's archive in `folder`, made now unless it is there and sound.

    Several processes may do so at once: each writes a file of its own and renames it.
    """
    content = _archive(for_this_python=for_this_python)
    path = folder / bundle_name(for_this_python=for_this_python)
    if not _is_sound(path, content):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_atomically(path, content)
    return path


def bundle_name(*, for_this_python: bool = False) -> str:
    """
    Name the archive by the digest of its sources.

    An archive for this Python is named by its whole content as well: what has been compiled changes.
    """
    names = [_digest(_archive(for_this_python=False))]
    if for_this_python:
        names.append(_digest(_archive(for_this_python=True)))
    return f"fleetform-agent-{'-'.join(names)}.pyz"


def portable_name(name: str) -> str:
    """Return the name of the archive for any Python that has the sources of this one."""
    return re.sub(r"^(fleetform-agent-[0-9a-f]{16})-[0-9a-f]{16}(?=\.pyz$)", r"\1", name)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _is_sound(path: Path, content: bytes) -> bool:
    """
    Tell whether the file has this content, and only this user can change it.

    Read before each start, in under a millisecond: a disk or a person may have damaged what the
    name promises, and a file that another user can write to would run as this one.
    """
    try:
        seen = path.lstat()
        return (
            stat.S_ISREG(seen.st_mode)
            and seen.st_uid == os.geteuid()
            and not seen.st_mode & _OTHERS
            and path.read_bytes() == content
        )
    except OSError:
        return False


@functools.cache
def _archive(*, for_this_python: bool) -> bytes:
    package = Path(agents.__file__).parent
    sources = _sources(package)
    folders = {str(parent) for name in sources for parent in Path(name).parents} - {"."}
    entries = {f"{name}/": b"" for name in folders} | sources | {"__main__.py": _MAIN}
    if for_this_python:
        entries |= _compiled(package.parent.parent, sources)
    buffer = io.BytesIO()
    # Stored, not deflated: another zlib would give other bytes, and starting is faster.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        # Folders are entries too: without one zipimport sees no namespace in `fleetform`.
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = _UNIX
            entry.external_attr = (0o40755 if name.endswith("/") else 0o100644) << 16
            archive.writestr(entry, entries[name])
    return buffer.getvalue()


def _sources(package: Path) -> dict[str, bytes]:
    """Read the sources of the package's rooms, by their names in the archive."""
    files = [package / "__init__.py"]
    for room in _ROOMS:
        files += (package / room).rglob("*.py")
    top = package.parent.parent
    return {file.relative_to(top).as_posix(): file.read_bytes() for file in files}


def _compiled(top: Path, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Read what this Python has compiled of the sources below `top`, by its names in the archive."""
    found = ((name, source, _code(top / name, source)) for name, source in sources.items())
    return {
        f"{name}c": _UNCHECKED + importlib.util.source_hash(source) + code
        for name, source, code in found
        if code
    }


def _code(file: Path, source: bytes) -> bytes:
    """Return the compiled code of a file, without its head; nothing where it is of another source."""
    try:
        written = int(file.stat().st_mtime) & 0xFFFFFFFF
        data = Path(importlib.util.cache_from_source(file)).read_bytes()
    except (OSError, NotImplementedError):  # The latter where this Python has no such files.
        return b""
    numbers = (0, written, len(source))
    head = importlib.util.MAGIC_NUMBER + b"".join(one.to_bytes(4, "little") for one in numbers)
    return data.removeprefix(head) if data.startswith(head) else b""


def _write_atomically(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".agent-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            # A name that a power cut left without its bytes would never be written again.
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

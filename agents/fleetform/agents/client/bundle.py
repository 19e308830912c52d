"""
The agent as one file that any Python from 3.9 on can run: `python -I -S FILE …`.

The archive holds `fleetform/agents` with the protocol and the host's side, and nothing else
of the product. The same sources give the same bytes on every machine, so the file is named
by their digest and is never changed: a host that has it need not be sent it again, and an
agent that runs from it keeps what it began with when the product is upgraded.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import stat
import tempfile
import zipfile
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

_OTHERS = 0o077
"""All that a mode can give to group and others; `mkstemp` makes files without any of it."""


def make_bundle(folder: Path) -> Path:
    """
    Return the agent's archive in `folder`, made now unless it is there and sound.

    Several processes may do so at once: each writes a file of its own and renames it.
    """
    content = _archive()
    path = folder / bundle_name()
    if not _is_sound(path, content):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_atomically(path, content)
    return path


def bundle_name() -> str:
    """Name the archive by its digest."""
    return f"fleetform-agent-{hashlib.sha256(_archive()).hexdigest()[:16]}.pyz"


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
def _archive() -> bytes:
    sources = _sources(Path(agents.__file__).parent)
    folders = {str(parent) for name in sources for parent in Path(name).parents} - {"."}
    entries = {f"{name}/": b"" for name in folders} | sources | {"__main__.py": _MAIN}
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

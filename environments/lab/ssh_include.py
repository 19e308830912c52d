"""
The line of a person's `~/.ssh/config` with which `ssh` and fleetform know the hosts of a lab.

It is the first line: of all values for an option, `ssh` takes the first.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path


def personal_config() -> Path:
    """Return the file of the person who asked for the lab, also with sudo."""
    if "SUDO_UID" in os.environ:
        home = Path(pwd.getpwuid(int(os.environ["SUDO_UID"])).pw_dir)
    else:
        home = Path.home()
    # A link may lead into a repository of such files.
    return (home / ".ssh/config").resolve()


def add(file: Path, config: Path) -> bool:
    """Include `config` in a person's file; False: it was included already."""
    lines = _lines(file)
    if _line(config) in lines:
        return False
    if not file.parent.exists():
        file.parent.mkdir(mode=0o700, parents=True)
        os.chown(file.parent, *_owner(file.parent.parent))
    _write(file, [_line(config), *lines])
    return True


def remove(file: Path, config: Path) -> bool:
    """Take the line away; False: it was not there."""
    lines = _lines(file)
    others = [line for line in lines if line != _line(config)]
    if others == lines:
        return False
    _write(file, others)
    return True


def _line(config: Path) -> str:
    return f'Include "{config}"\n'


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="surrogateescape").splitlines(keepends=True)
    except FileNotFoundError:
        return []


def _write(file: Path, lines: list[str]) -> None:
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".config-")
    with os.fdopen(descriptor, "w", errors="surrogateescape") as new:
        new.writelines(lines)
        if file.exists():
            os.fchmod(descriptor, file.stat().st_mode & 0o777)
        os.fchown(descriptor, *_owner(file if file.exists() else file.parent))
    Path(name).replace(file)


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid

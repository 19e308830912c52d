"""
Unpacks a run's code: a tar archive whose content is known by its digest.

Whoever may submit a run decides what is in it, so nothing of it is believed: a name that leads out
of the directory, a link that does, anything that is neither file, folder nor link, and more than
the bounds end the preparation before anything of the job is executed.
"""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections.abc import Iterator

from fleetform.agents.protocol.messages import BUNDLE_BYTES_MAX, BUNDLE_FILES_MAX

_PIECE_BYTES = 1 << 20


class BundleError(Exception):
    """The archive is not one that is unpacked; the message says why."""


def unpack(archive: str, directory: str) -> None:
    """
    Write what the archive at `archive` holds below `directory`, which is there and empty.

    Raises:
        BundleError: Something in it is not allowed, or it is no archive.
        OSError: It cannot be written.
    """
    try:
        with tarfile.open(archive, "r:") as bundle:
            members = _checked(bundle)
            # Links come last: whatever is written before them is written below no link.
            for member in sorted(members, key=tarfile.TarInfo.issym):
                _write(bundle, member, f"{directory}/{posixpath.normpath(member.name)}")
    except tarfile.TarError as error:
        raise BundleError(f"it is not an archive: {error}") from error


def _checked(bundle: tarfile.TarFile) -> list[tarfile.TarInfo]:
    members: list[tarfile.TarInfo] = []
    names: set[str] = set()
    links: set[str] = set()
    size = 0
    for member in bundle:
        members.append(member)
        size += member.size
        if len(members) > BUNDLE_FILES_MAX:
            raise BundleError(f"it has more than {BUNDLE_FILES_MAX} files")
        if size > BUNDLE_BYTES_MAX:
            raise BundleError(f"it has more than {BUNDLE_BYTES_MAX >> 20} MB")
        if not (member.isreg() or member.isdir() or member.issym()):
            raise BundleError(f"{member.name!r} is neither a file nor a folder nor a link")
        name = _inside(member.name)
        if name in names:
            raise BundleError(f"{member.name!r} occurs twice")
        names.add(name)
        if member.issym():
            _check_link(member, name)
            links.add(name)
    for name in names:
        if not links.isdisjoint(_above(name)):
            raise BundleError(f"{name!r} is below a link")
    return members


def _inside(path: str) -> str:
    """Return the path without detours; refuse one that leads out, or to the top itself."""
    name = posixpath.normpath(path)
    if path.startswith("/") or name.split("/")[0] in {"..", "."} or "\0" in path:
        raise BundleError(f"{path!r} points outside of the archive")
    return name


def _above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _check_link(member: tarfile.TarInfo, name: str) -> None:
    """
    Refuse a link that may lead out.

    Steps up are only taken from where the link itself stands: behind the name of another link, a
    step up would begin where that one leads.
    """
    target = member.linkname
    steps = [step for step in target.split("/") if step not in {"", "."}]
    up = next((number for number, step in enumerate(steps) if step != ".."), len(steps))
    is_plain = bool(target) and not target.startswith("/") and ".." not in steps[up:]
    if not is_plain or up > name.count("/"):
        raise BundleError(f"the link {member.name!r} points outside of the archive")


def _write(bundle: tarfile.TarFile, member: tarfile.TarInfo, target: str) -> None:
    if member.isdir():
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if member.issym():
        os.symlink(member.linkname, target)
        return
    content = bundle.extractfile(member)
    assert content is not None, "a plain file has a content"
    mode = 0o755 if member.mode & 0o100 else 0o644
    # Exclusively: a file where a folder or another file was made is no archive of ours.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with content, os.fdopen(descriptor, "wb") as file:
        while True:
            piece = content.read(_PIECE_BYTES)
            if not piece:
                return
            file.write(piece)

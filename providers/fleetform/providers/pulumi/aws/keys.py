"""The SSH key with which an environment signs in to its hosts in clouds; the private half stays on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from fleetform.spec.private_folder import make_private_folder

__all__ = ["key_file", "public_key"]

_NAME = "id_ed25519"


def key_file(folder: Path) -> Path:
    """Return where the private half is."""
    return folder / _NAME


def public_key(folder: Path) -> str:
    """Return the public half of the key in a folder; create the key if there is none."""
    path = key_file(folder)
    if not path.exists():
        _create(path)
    # Here: a key is needed only where hosts are created.
    import asyncssh

    return asyncssh.read_private_key(path).export_public_key().decode().strip()


def _create(path: Path) -> None:
    import asyncssh

    make_private_folder(path.parent)
    # Complete before it has its name: one that is cut off must not leave half a key behind.
    new = path.with_name(f".{path.name}.{os.getpid()}")
    key = asyncssh.generate_private_key("ssh-ed25519", comment="fleetform")
    key.write_private_key(new)
    new.chmod(0o600)
    new.rename(path)

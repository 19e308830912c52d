"""The SSH key with which an environment signs in to its hosts in clouds; the private half stays on this machine."""

from __future__ import annotations

from pathlib import Path

from fleetform.providers.pulumi.private_files import create_private

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

    key = asyncssh.generate_private_key("ssh-ed25519", comment="fleetform")
    create_private(path, key.export_private_key())

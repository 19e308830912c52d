"""
Where a stack has its state, its work directory and its passphrase.

The state follows the ledger: files next to SQLite, a table next to PostgreSQL. The passphrase is kept
apart from both, so that a copy of the ledger opens no secret. The work directory lasts as long as the
stack, and another machine makes its own: the salt of its secrets is in the state as well.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleetform.providers.private_files import create_private

__all__ = [
    "StackSettings",
    "engine_environment",
    "passphrase_file",
    "urn",
]

PROJECT = "fleetform"
"""All stacks are of one Pulumi project: the ledger is their index, and their names are unique."""

_STACK_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True)
class StackSettings:
    """
    One stack; `folder` is its own, for work and locks.

    `variables` are for the engine and may be secret. `breaks_locks`: the state accepts no write of an
    earlier controller, so a lock that another machine left in it may be deleted. Locks of this machine
    always are, because the runner's own lock excludes their processes.
    """

    name: str
    folder: Path
    backend: str
    passphrase: Path
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    breaks_locks: bool = False

    def __post_init__(self) -> None:
        assert _STACK_NAME.fullmatch(self.name), f"{self.name!r} cannot be the name of a stack"


def urn(stack: str, resource_type: str, name: str) -> str:
    """Return the name by which the engine and its state know a resource."""
    return f"urn:pulumi:{stack}::{PROJECT}::{resource_type}::{name}"


def passphrase_file(folder: Path, environment_uid: str) -> Path:
    """
    Return the file with the environment's passphrase; create it if there is none.

    Args:
        folder: Outside of the state folder, so that one backup does not contain both.
        environment_uid: Names the file.
    """
    path = folder / f"{environment_uid}.passphrase"
    if path.exists():
        return path
    create_private(path, secrets.token_urlsafe(32).encode())
    return path


def engine_environment(settings: StackSettings, given: Mapping[str, str]) -> dict[str, str]:
    """
    Return the variables of the runner: those of the caller, and where the engine finds its state.

    Variables of Pulumi are dropped, because each of them can change what the engine does: another
    backend, a passphrase, a default of an option. `PULUMI_HOME` stays: plugins are installed there.
    """
    kept = {
        name: value
        for name, value in given.items()
        if not name.startswith("PULUMI_") or name == "PULUMI_HOME"
    }
    return {
        **kept,
        **settings.variables,
        "PULUMI_BACKEND_URL": _engine_url(settings.backend),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(settings.passphrase),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
    }


def _engine_url(backend: str) -> str:
    """
    Return the URL for the engine: state in files comes without the library's files of attributes.

    The state is replaced in one step, its attributes are not: an engine that is killed at the wrong
    moment leaves an empty file of them, and then refuses to read the state (`EOF`).
    """
    if not backend.startswith("file://") or "metadata=" in backend:
        return backend
    return f"{backend}{'&' if '?' in backend else '?'}metadata=skip"

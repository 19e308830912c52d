"""
Upgrades a ledger that an earlier release wrote, after a backup of it.

Opening a ledger never does so by itself: an upgrade cannot be taken back, so the command that asks for it
first says where the backup goes, and tells the person.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fleetform.store.database import connect, translated
from fleetform.store.schema import VERSION, upgrade_schema
from fleetform.store.soundness import require_known, require_owner, require_shape, require_sound

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["Keep", "Upgraded", "upgrade_file"]

Keep: TypeAlias = "Callable[[Statements, str], Path]"
"""Writes a backup of a ledger of a version, and returns where it is."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """From which version of the schema to which, and where the backup of the first is."""

    before: str
    after: str
    backup: Path


def upgrade_file(path: Path, environment_uid: str, keep: Keep) -> Upgraded | None:
    """
    Upgrade the ledger at `path`; None where it is of this release already.

    One transaction: a crash leaves the old ledger or the new one.

    Args:
        path: The ledger's file, which exists.
        environment_uid: Whose ledger it is.
        keep: Writes the backup; where it cannot, nothing is changed.

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    require_sound(path)
    with closing(connect(path)) as connection:
        version = require_known(connection, path)
        require_owner(connection, path, environment_uid)
        if version == VERSION:
            return None
        with translated():
            # A backup is of one moment, although others write.
            connection.execute("BEGIN")
            try:
                backup = keep(connection, version)
            finally:
                connection.execute("ROLLBACK")
            upgrade_schema(connection)
        require_shape(connection, path)
    return Upgraded(version, VERSION, backup)

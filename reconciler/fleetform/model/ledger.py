"""What a ledger says of itself: whose it is, how far it is, and whether it can be trusted."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class LedgerStatus(enum.StrEnum):
    """
    `EMPTY`: new. `READY`: in use. `RECOVERING`: hosts remember a newer or another
    ledger; nothing is started, deleted or bought until the state has been rebuilt.
    """

    EMPTY = "empty"
    READY = "ready"
    RECOVERING = "recovering"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a ledger says of itself; `note` says why it is recovering."""

    environment_uid: str
    ledger_id: str
    epoch: int
    serial: int
    status: LedgerStatus
    note: str

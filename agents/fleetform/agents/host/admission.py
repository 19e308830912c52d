"""
Whom the agent obeys: the first check of all, at the start of a connection.

An agent belongs to one environment for good, and to the newest epoch of its ledger. A ledger
restored from a backup, or built anew, comes with a higher epoch; one that does not is a second
one that must not act. Within an epoch the highest fence speaks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

from fleetform.agents.host import memory
from fleetform.agents.host.effects import Effect
from fleetform.agents.host.memory import Entry, Memory
from fleetform.agents.protocol.messages import (
    PROTOCOL_NEWEST,
    PROTOCOL_OLDEST,
    Hello,
    JobRecord,
    Rejected,
)
from fleetform.agents.protocol.naming import short_uid

TOMBSTONES_IN_SNAPSHOT_MAX = 20_000
"""About 6 MB of a frame's 16. The newest; the agent itself still refuses by all of them."""


def objection(hello: Hello, known: Memory) -> Rejected | None:
    """Say why the sender is not obeyed; None when it is."""
    found = _objection(hello, known)
    if found is None:
        return None
    code, message = found
    return Rejected(code, message, known.owner, known.ledger_id, known.epoch)


def _objection(hello: Hello, known: Memory) -> tuple[str, str] | None:
    if agreed_protocol(hello) is None:
        return "protocol", (
            f"the agent uses protocol {_range(PROTOCOL_OLDEST, PROTOCOL_NEWEST)}, and the controller "
            f"uses {_range(hello.protocol, hello.protocol_newest)}: update the older one"
        )
    if known.owner is None:
        return None
    if hello.environment_uid != known.owner:
        return "foreign_owner", (
            f"this agent belongs to environment {_owner(known)}: release the host there first"
        )
    if hello.look:
        return None
    if hello.ledger_id != known.ledger_id:
        if hello.epoch > known.epoch:
            return None
        return "foreign_ledger", (
            f"this agent follows ledger {known.ledger_id} of epoch {known.epoch}: rebuild your ledger with "
            "`fleetform state rebuild`, which raises its epoch"
        )
    if hello.epoch < known.epoch:
        return "old_epoch", (
            f"this agent knows epoch {known.epoch} of the ledger: your ledger is older, perhaps a "
            "restored backup"
        )
    if hello.epoch == known.epoch and hello.fence < known.fence:
        return "old_fence", f"another controller with the newer fence {known.fence} has taken over"
    return None


def agreed_protocol(hello: Hello) -> int | None:
    """Return the highest version that both ends speak; None where there is none."""
    newest = min(PROTOCOL_NEWEST, max(hello.protocol, hello.protocol_newest))
    return newest if newest >= max(PROTOCOL_OLDEST, hello.protocol) else None


def _range(oldest: int, newest: int) -> str:
    return f"{oldest} to {newest}" if newest > oldest else str(oldest)


def adopt(hello: Hello, known: Memory, now_ms: int) -> list[Effect]:
    """Take the sender's numbers; only what changed is written."""
    effects: list[Effect] = []
    if known.owner is None:
        known.owned_since_ms = now_ms
    if (known.owner, known.ledger_id, known.epoch) != _identity(hello):
        known.owner_name = hello.environment_name or known.owner_name
        known.owner, known.ledger_id, known.epoch = _identity(hello)
        # Fences count within an epoch.
        known.fence = hello.fence
        effects = [memory.of_identity(known), memory.of_fence(known)]
    elif hello.fence > known.fence:
        known.fence = hello.fence
        effects = [memory.of_fence(known)]
    return effects


def _owner(known: Memory) -> str:
    """Name an owner as people know it: `lab (0b2f6a0e…) since 2026-11-21T10:26:30Z`."""
    uid = short_uid(str(known.owner))
    name = f"{known.owner_name} ({uid})" if known.owner_name else uid
    if not known.owned_since_ms:
        return name
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(known.owned_since_ms // 1000))
    return f"{name} since {since}"


def records(entries: Iterable[Entry]) -> tuple[JobRecord, ...]:
    """Return the snapshot for a welcome: every record, and the newest tombstones."""
    live: list[Entry] = []
    buried: list[Entry] = []
    for entry in entries:
        (buried if entry.record.tombstone else live).append(entry)
    buried.sort(key=lambda entry: entry.buried_at_ms, reverse=True)
    newest = itertools.islice(buried, TOMBSTONES_IN_SNAPSHOT_MAX)
    return tuple(entry.record for entry in itertools.chain(live, newest))


def _identity(hello: Hello) -> tuple[str, str, int]:
    return hello.environment_uid, hello.ledger_id, hello.epoch

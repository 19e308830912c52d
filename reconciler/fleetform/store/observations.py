"""
What the world was last seen to be, kept beside what was made.

Only what was found right is kept, with when: so the next look can say since when it is not, and
two looks at a drift tell the same. The values are text, for the same reason as everywhere: what
is compared is stored as it is compared.
"""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fleetform.model.drift import Noted
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json

__all__ = ["last_changes", "note_observations", "read_known_runs", "read_observations"]

_BATCH = 500
"""Values bound at a time: SQLite allows 999 in its older builds."""


class Executes(Protocol):
    """A connection or a transaction."""

    def execute(self, statement: str, values: Any = ..., /) -> Any: ...


def read_observations(connection: Executes) -> dict[ResourceKey, dict[str, Noted]]:
    """Return what was right when it was looked at last, by resource and path of the field."""
    return {
        ResourceKey(kind, name): {path: Noted(*one) for path, one in json.loads(observed).items()}
        for kind, name, observed in connection.execute(
            "SELECT kind, name, observed FROM resources WHERE observed <> ''"
        )
    }


def read_known_runs(connection: Executes, uids: Iterable[str]) -> frozenset[str]:
    """Return those of `uids` that are runs of this ledger."""
    wanted = list(dict.fromkeys(uids))
    found: set[str] = set()
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        marks = ", ".join("?" * len(batch))
        rows = connection.execute(f"SELECT uid FROM runs WHERE uid IN ({marks})", batch)
        found.update(uid for (uid,) in rows)
    return frozenset(found)


def last_changes(connection: Executes) -> dict[ResourceKey, Noted]:
    """Return who has last changed each fleet and volume through us, and when."""
    rows = connection.execute(
        "SELECT o.resource_kind, o.resource_name, a.who, a.finished_at_ms FROM operations o"
        " JOIN applies a ON a.uid = o.apply_uid WHERE o.state = 'done'"
        " AND o.resource_kind IN ('fleet', 'volume') AND a.finished_at_ms IS NOT NULL"
        " ORDER BY a.number"
    )
    return {ResourceKey(kind, name): Noted(who, at_ms) for kind, name, who, at_ms in rows}


def note_observations(
    transaction: Transaction, right: Mapping[ResourceKey, Mapping[str, str]], *, at_ms: int
) -> None:
    """
    Keep what was found right.

    A field that is not in `right` keeps what was noted of it before: that is when it was last as
    it should be. A resource that has gone meanwhile is passed over.
    """
    before = read_observations(transaction)
    for key, values in sorted(right.items()):
        noted = before.get(key, {})
        merged = {path: [one.value, one.at_ms] for path, one in noted.items()}
        merged.update({path: [value, at_ms] for path, value in values.items()})
        transaction.execute(
            "UPDATE resources SET observed = ?, observed_at_ms = ? WHERE kind = ? AND name = ?",
            (to_json(merged), at_ms, *key),
        )

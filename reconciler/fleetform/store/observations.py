"""
The actual state as it was last seen, kept next to what was created.

`observed` of a fleet or volume is JSON, an entry for each field: `[value, when]`, as it was last
found right, and behind that the drift, if one was seen since. So the next look can say since when a
field is not right, two looks at a drift report the same, and a plan knows of it without a look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Protocol

from fleetform.model.drift import Drift, DriftClass, Noted, RecordedDrift, Remedy
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json

__all__ = [
    "Executes",
    "heal",
    "last_changes",
    "note_observations",
    "read_drift",
    "read_known_runs",
    "read_observations",
]


class Executes(Protocol):
    """A connection or a transaction."""

    def execute(self, statement: str, values: Any = ..., /) -> Any: ...


def read_observations(connection: Executes) -> dict[ResourceKey, dict[str, Noted]]:
    """Return what was right when it was looked at last, by resource and path of the field."""
    return {
        key: {path: Noted(*one[:2]) for path, one in entries.items() if one[0] is not None}
        for key, entries in _entries(connection).items()
    }


def _entries(connection: Executes) -> dict[ResourceKey, dict[str, list[Any]]]:
    return {
        ResourceKey(kind, name): json.loads(observed)
        for kind, name, observed in connection.execute(
            "SELECT kind, name, observed FROM resources WHERE observed <> ''"
        )
    }


def read_drift(connection: Executes) -> tuple[RecordedDrift, ...]:
    """Return what looks found and nothing has healed since, by resource and path."""
    rows = connection.execute(
        "SELECT kind, name, observed FROM resources"
        " WHERE kind IN ('fleet', 'volume') AND archived = 0 AND observed LIKE '%\"drift\":%'"
    ).fetchall()
    if not rows:
        return ()
    hosts = {
        (fleet, name)
        for fleet, name in connection.execute(
            "SELECT fleet, name FROM instances WHERE state <> 'terminated'"
        )
    }
    found = [
        _drift_of(ResourceKey(kind, name), one[2])
        for kind, name, observed in rows
        for one in json.loads(observed).values()
        if len(one) > 2
        # A host that left took its drift along.
        if not one[2]["part"] or one[2]["drift"] in _OF_STRANGERS or (name, one[2]["part"]) in hosts
    ]
    return tuple(sorted(found, key=lambda one: one.place))


_OF_STRANGERS = frozenset({"unknown", "record"})
"""Fields of what the ledger does not know, and so not of one of its hosts."""


_KEYS = {"field": "drift", "drift_class": "class"}
"""Names of fields of `Drift` in the stored JSON, where they differ."""


def _drift_of(home: ResourceKey, one: Mapping[str, Any]) -> RecordedDrift:
    values: dict[str, Any] = {
        each.name: one.get(_KEYS.get(each.name, each.name)) for each in fields(Drift)
    }
    values["resource"] = ResourceKey("run", one["run"]) if "run" in one else home
    values["drift_class"], values["remedy"] = DriftClass(one["class"]), Remedy(one["remedy"])
    drift = Drift(**values)
    return RecordedDrift(drift, one["found_at_ms"], one["seen_at_ms"])


def _written(one: RecordedDrift) -> dict[str, Any]:
    drift = one.drift
    names = (each.name for each in fields(Drift) if each.name != "resource")
    return {
        **{_KEYS.get(name, name): getattr(drift, name) for name in names},
        **({"run": drift.resource.name} if drift.resource.kind == "run" else {}),
        "found_at_ms": one.found_at_ms,
        "seen_at_ms": one.seen_at_ms,
    }


def read_known_runs(connection: Executes, uids: Iterable[str]) -> frozenset[str]:
    """Return those of `uids` that are runs of this ledger."""
    rows = connection.execute(
        "SELECT uid FROM runs WHERE uid IN (SELECT value FROM json_each(?))", (to_json([*uids]),)
    )
    return frozenset(uid for (uid,) in rows)


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
    transaction: Transaction,
    right: Mapping[ResourceKey, Mapping[str, str]],
    recorded: Iterable[RecordedDrift] | None = None,
    *,
    at_ms: int,
) -> None:
    """
    Keep what was found right, and what was found to have drifted.

    A field that is not in `right` keeps what was noted of it before: that is when it was last as
    it should be. A resource that has gone meanwhile is passed over.

    Args:
        transaction: In which that is written.
        right: By resource and path: a drift that was recorded there is healed.
        recorded: All drifts that are to be remembered from now on; None: those of before.
        at_ms: When `right` was seen.
    """
    before = _entries(transaction)
    after: dict[ResourceKey, dict[str, list[Any]]] = {}
    for key, entries in before.items():
        after[key] = {
            path: one if recorded is None else one[:2]
            for path, one in entries.items()
            if recorded is None or one[0] is not None
        }
    for key, values in right.items():
        after.setdefault(key, {}).update({path: [value, at_ms] for path, value in values.items()})
    for one in recorded or ():
        entries = after.setdefault(_home(transaction, one.drift), {})
        entries[one.drift.path] = [*entries.get(one.drift.path, _NEVER_RIGHT), _written(one)]
        _note_end(transaction, one)
    for key, entries in sorted(after.items()):
        if entries != before.get(key):
            _write(transaction, key, entries, at_ms)


def _note_end(transaction: Transaction, one: RecordedDrift) -> None:
    """Have an instance of a cloud that is gone cost nothing from when that was found: it never returns."""
    if one.drift.field != "host":
        return
    rows = transaction.execute(
        "SELECT uid, endpoint FROM instances"
        " WHERE fleet = ? AND name = ? AND created_at_ms IS NOT NULL AND ended_at_ms IS NULL",
        (one.drift.resource.name, one.drift.part),
    )
    for uid, endpoint in rows.fetchall():
        # By the id of the cloud: its place may have another instance by now.
        if json.loads(endpoint).get("id") == one.drift.expected:
            transaction.execute(
                "UPDATE instances SET ended_at_ms = ? WHERE uid = ?", (one.found_at_ms, uid)
            )


_NEVER_RIGHT = (None, None)


def _home(transaction: Transaction, one: Drift) -> ResourceKey:
    """The resource whose row keeps a drift: jobs that the ledger does not know have none."""
    if one.resource.kind != "run":
        return one.resource
    host = one.part.partition("/")[0]
    row = transaction.one(
        "SELECT fleet FROM instances WHERE name = ? AND state <> 'terminated'", (host,)
    )
    return ResourceKey("fleet", row[0] if row else "")


def heal(
    transaction: Transaction, key: ResourceKey, *, part: str = "", keeps: Iterable[str] = ()
) -> None:
    """
    Forget the recorded drift of one resource, or of its host `part`, which was seen to be right.

    Args:
        transaction: In which that is written.
        key: Of a fleet or volume.
        part: Name of a host; empty: the fields of the resource as a whole.
        keeps: Fields of which nothing was seen.
    """
    row = transaction.one(
        "SELECT observed, observed_at_ms FROM resources"
        " WHERE kind = ? AND name = ? AND observed LIKE '%\"drift\":%'",
        key,
    )
    if row is None:
        return
    kept = frozenset({*keeps, *_OF_STRANGERS})
    entries = {}
    for path, one in json.loads(row[0]).items():
        is_healed = len(one) > 2 and one[2]["part"] == part and one[2]["drift"] not in kept
        if not is_healed:
            entries[path] = one
        elif one[0] is not None:
            entries[path] = one[:2]
    _write(transaction, key, entries, row[1])


def _write(
    transaction: Transaction, key: ResourceKey, entries: Mapping[str, Any], at_ms: int
) -> None:
    transaction.execute(
        "UPDATE resources SET observed = ?, observed_at_ms = ? WHERE kind = ? AND name = ?",
        (to_json(entries), at_ms, *key),
    )

"""
Which attempts of other runs an attempt was made from, and whether they were redone since.

Written when an attempt is given its place, for what it finds then is what it reads. An entry is
`[run uid, attempt]`; of a sweep with more elements than anybody reads it is one entry for all of
them, `["name[*]", latest run's number, sum of attempts]`: a sweep of a thousand that waits for
another of a thousand would else write a million.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fleetform.store.database import Transaction, to_json
from fleetform.store.statements import Statements

__all__ = ["read_redone", "record_upstream"]

LISTED_MAX = 32
"""Elements of a sweep that are named one by one; more are one entry."""

_FAMILY = "[*]"

_Entry = Sequence[Any]


def record_upstream(transaction: Transaction, placed: Iterable[tuple[str, int]]) -> None:
    """Write what these attempts are made from: (run uid, attempt)."""
    known: dict[str, list[_Entry]] = {}
    rows: list[tuple[str, str, int]] = []
    attempts = dict(placed)
    if not attempts:
        return
    for uid, element, document in transaction.execute(
        "SELECT uid, element, document FROM runs"
        " WHERE uid IN (SELECT value FROM json_each(?)) AND document LIKE ? ORDER BY number",
        (to_json(list(attempts)), '%"depends_on"%'),
    ).fetchall():
        attempt = attempts[uid]
        found: list[_Entry] = []
        for name in _names(element, document):
            if name not in known:
                known[name] = _standing(transaction, name)
            found.extend(known[name])
        if found:
            rows.append((to_json(found), uid, attempt))
    transaction.many("UPDATE attempts SET upstream = ? WHERE run_uid = ? AND number = ?", rows)


def _names(element: str, document: str) -> list[str]:
    """Runs and sweeps that a document depends on, by name."""
    listed = json.loads(document).get("depends_on", {}).get("runs", ())
    return [
        f"{one['run']}[{element}]" if one.get("each") and element else str(one["run"])
        for one in listed
    ]


def _standing(connection: Transaction, name: str) -> list[_Entry]:
    """The latest attempts behind a name: of one run, or of all elements of a sweep."""
    own = connection.execute(
        "SELECT uid, attempt FROM runs WHERE name = ? AND listed = 1", (name,)
    ).fetchall()
    if own:
        return [list(row) for row in own]
    elements = connection.execute(
        "SELECT uid, attempt FROM runs WHERE parent = ? AND listed = 1 ORDER BY number", (name,)
    ).fetchall()
    if len(elements) <= LISTED_MAX:
        return [list(row) for row in elements]
    return [[f"{name}{_FAMILY}", *_family(connection, name)[:2]]]


def _family(connection: Transaction | Statements, name: str) -> tuple[int, int, bool]:
    """The number of the latest run of a sweep, all attempts of it, and whether all are done."""
    row = connection.execute(
        "SELECT coalesce(max(number), 0), CAST(coalesce(sum(attempt), 0) AS BIGINT),"
        " coalesce(sum(CASE WHEN state <> 'done' THEN 1 ELSE 0 END), 0)"
        " FROM runs WHERE parent = ? AND listed = 1",
        (name,),
    ).fetchone()
    return row[0], row[1], row[2] == 0


def read_redone(connection: Statements) -> dict[str, tuple[str, ...]]:
    """
    Name the runs of the tree whose input was done anew since they were placed, with those inputs.

    An input counts as redone once its later execution is done: until then there is no other result.
    """
    rows = connection.execute(
        "SELECT r.name, a.upstream FROM attempts a JOIN runs r ON r.uid = a.run_uid"
        " WHERE a.upstream <> '' AND r.listed = 1 AND r.attempt = a.number ORDER BY r.name"
    ).fetchall()
    known: dict[tuple[Any, ...], str] = {}
    redone: dict[str, tuple[str, ...]] = {}
    for name, upstream in rows:
        found: set[str] = set()
        for entry in json.loads(upstream):
            key = tuple(entry)
            if key not in known:
                known[key] = _redone(connection, key)
            found.add(known[key])
        if names := tuple(sorted(found - {""})):
            redone[name] = names
    return redone


def _redone(connection: Statements, entry: tuple[Any, ...]) -> str:
    """The name of an input that was done anew; empty for one that is as it was found."""
    if entry[0].endswith(_FAMILY):
        name = entry[0].removesuffix(_FAMILY)
        *now, done = _family(connection, name)
        return name if done and now != list(entry[1:]) and now[0] else ""
    uid, attempt = entry
    row = connection.execute("SELECT name FROM runs WHERE uid = ?", (uid,)).fetchone()
    if row is None:
        return ""
    latest = connection.execute(
        "SELECT uid, attempt, state FROM runs WHERE name = ? AND listed = 1", row
    ).fetchone()
    if latest is None or latest[:2] == (uid, attempt) or latest[2] != "done":
        return ""
    return str(row[0])

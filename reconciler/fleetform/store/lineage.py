"""
Which results of other runs an attempt started from, and whether the results of now differ.

Written when an attempt is given its place, for what it finds then is what it reads. `upstream` of
an attempt is JSON, an entry `[name, when, results]` for each input: `results` is
`{element: [run uid, attempt]}`, or a fingerprint of a sweep with many elements. A sweep of a
thousand that waits for another of a thousand would else write a million.

An earlier form, which ledgers may still have, is `[run uid, attempt]` for each element, and
`["name[*]", latest run's number, sum of attempts]` of a large sweep. That is not the whole set: of
such an attempt it is only known which of its inputs were run again.
"""

from __future__ import annotations

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.model.lineage import (
    ALL_OF,
    DEPENDENCY,
    NO_RESULT,
    InputChange,
    InputEvent,
    ResultId,
    abort_reason,
    has_result,
    input_changes,
    since_met,
)
from fleetform.model.run_state import RunState
from fleetform.model.volume import mounted_volumes
from fleetform.store.database import Transaction, to_json

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = [
    "LISTED_MAX",
    "LOST_AT",
    "Inputs",
    "Lineage",
    "inputs_of",
    "read_abort_reasons",
    "read_lineage",
    "read_outdated",
    "record_upstream",
]


LISTED_MAX = 32
"""Elements of a sweep that are named one by one; of more, a fingerprint is kept."""

LOST_AT = "lost_at_ms"
"""In the outputs of a volume's row: when it began again, empty, because its data was lost."""

_FAMILY = "[*]"
"""Ends the name of a large sweep in the earlier form."""

_Found = tuple[ResultId, RunState, bool]
"""Of an element: its latest attempt, its state, and whether it has started."""

_Entry = Sequence[Any]
_Key = tuple[Any, ...]


# -- writing --------------------------------------------------------------------------------


def record_upstream(transaction: Transaction, placed: Iterable[tuple[str, int]]) -> None:
    """Write which results these attempts start from: (run uid, attempt)."""
    attempts = dict(placed)
    if not attempts:
        return
    waiting = [
        (uid, element, json.loads(document).get("depends_on", {}))
        for uid, element, document in transaction.execute(
            "SELECT uid, element, document FROM runs"
            " WHERE uid IN (SELECT value FROM json_each(?)) AND document LIKE '%\"depends_on\"%'"
            " ORDER BY number",
            (to_json(list(attempts)),),
        ).fetchall()
    ]
    inputs = Inputs(transaction)
    inputs.read(name for _, element, wanted in waiting for name, _ in inputs_of(element, wanted))
    written: dict[tuple[str, str], str] = {}
    rows = []
    for uid, element, wanted in waiting:
        names = inputs_of(element, wanted)
        if not wanted.get("all", True):
            # Of alternatives, one without a result yet is none that the attempt starts from.
            names = [one for one in names if inputs.is_complete(*one)]
        for one in names:
            if one not in written:
                written[one] = _entry(inputs, *one)
        if names:
            rows.append((f"[{','.join(written[one] for one in names)}]", uid, attempts[uid]))
    transaction.many("UPDATE attempts SET upstream = ? WHERE run_uid = ? AND number = ?", rows)


def inputs_of(element: str, wanted: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Runs and sweeps that a document depends on, by name, and what it waits for."""
    return [
        (
            f"{one['run']}[{element}]" if one.get("each") and element else str(one["run"]),
            str(one.get("when", "succeeded")),
        )
        for one in wanted.get("runs", ())
    ]


def _entry(inputs: Inputs, name: str, when: str) -> str:
    family = inputs.family(name)
    if family is not None:
        # One that has no result although it was waited for was submitted again at this moment.
        return to_json([name, when, family.fingerprint if family.is_complete(when) else NO_RESULT])
    results = inputs.results(name, when)
    return to_json([name, when, {each: one or NO_RESULT for each, one in results.items()}])


class _Family(NamedTuple):
    """
    A sweep with many elements, as one row: how many it has, and how many have which result.

    `fingerprint` is of the set of latest attempts. The database makes it, for a sweep of thousands
    is looked at each time that one of thousands of dependents starts.
    """

    size: int
    fingerprint: list[int]
    done: int
    final: int
    started: int

    def is_complete(self, when: str) -> bool:
        """Tell whether every element has what a dependency waits for; see `has_result`."""
        has = {
            "succeeded": self.done,
            "finished": self.final,
            "failed": self.final - self.done,
            "started": self.started,
        }
        return has[when] == self.size


# A run's number is unique and never changes. The square is what a sum alone lacks: two elements
# that left and two that came back may have the same sum, and hardly the same sum of squares.
_MIXED = "((number * 69069 + attempt * 1013) % 2147483647)"
_FAMILIES = (
    "SELECT parent, count(*), CAST(sum(number) AS BIGINT), CAST(sum(attempt) AS BIGINT),"
    f" CAST(sum({_MIXED} * {_MIXED} % 2147483647) AS BIGINT),"
    " CAST(sum(CASE WHEN state = 'done' THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(final) AS BIGINT),"
    " CAST(sum(CASE WHEN started_at_ms IS NULL THEN 0 ELSE 1 END) AS BIGINT)"
    " FROM runs WHERE listed = 1 AND parent IN (SELECT value FROM json_each(?)) GROUP BY parent"
)
_SINGLE = (
    "SELECT parent, name, uid, attempt, state, started_at_ms IS NOT NULL FROM runs"
    " WHERE listed = 1 AND {} IN (SELECT value FROM json_each(?))"
)


@dataclass(slots=True)
class Inputs:
    """What stands behind names of runs and sweeps at this moment, read for many names at once."""

    connection: Transaction | Statements
    _runs: dict[str, _Found] = field(default_factory=dict)
    _elements: dict[str, dict[str, _Found]] = field(default_factory=dict)
    _families: dict[str, _Family] = field(default_factory=dict)

    def read(self, names: Iterable[str]) -> None:
        wanted = set(names)
        for _, name, *found in self._rows(_SINGLE.format("name"), wanted):
            self._runs[name] = _found(*found)
        for parent, size, *sums, done, final, started in self._rows(_FAMILIES, wanted):
            fingerprint = [size, *sums]
            self._families[parent] = _Family(size, fingerprint, done, final, started)
        listed = {name for name, one in self._families.items() if one.size <= LISTED_MAX}
        for parent, name, *found in self._rows(_SINGLE.format("parent"), listed):
            self._elements.setdefault(parent, {})[name] = _found(*found)

    def _rows(self, statement: str, names: set[str]) -> Iterable[Sequence[Any]]:
        return self.connection.execute(statement, (to_json(sorted(names)),)) if names else ()

    def is_run(self, name: str) -> bool:
        """Tell whether a name is that of a run, and not of a sweep or array."""
        return name in self._runs

    def family(self, name: str) -> _Family | None:
        """A sweep with more elements than are listed; else None."""
        found = None if name in self._runs else self._families.get(name)
        return None if found is None or found.size <= LISTED_MAX else found

    def fingerprint(self, name: str) -> list[int]:
        found = None if name in self._runs else self._families.get(name)
        return found.fingerprint if found is not None else []

    def results(self, name: str, when: str) -> dict[str, ResultId | None]:
        """By element; None for one without a result. Empty for what the configuration has not."""
        own = self._runs.get(name)
        behind = self._elements.get(name, {}) if own is None else {name: own}
        return {
            element: result if has_result(when, state, started=started) else None
            for element, (result, state, started) in behind.items()
        }

    def is_complete(self, name: str, when: str) -> bool:
        if (family := self.family(name)) is not None:
            return family.is_complete(when)
        results = self.results(name, when)
        return bool(results) and None not in results.values()


def _found(uid: str, attempt: int, state: str, started: object) -> _Found:
    return (uid, attempt), RunState(state), bool(started)


# -- reading --------------------------------------------------------------------------------


class Lineage(NamedTuple):
    """
    Which results are outdated, and which runs started from which input.

    `dependents` are by name of the run or sweep that they started from.
    """

    outdated: dict[str, tuple[InputChange, ...]]
    dependents: dict[str, list[str]]


def read_outdated(connection: Statements) -> dict[str, tuple[InputChange, ...]]:
    """Name the runs of the configuration whose inputs differ; see `read_lineage`."""
    return read_lineage(connection).outdated


def read_lineage(connection: Statements) -> Lineage:
    """
    Name the runs of the configuration whose inputs differ from those that they started from.

    An input that is run again counts from the end of its later execution on: until then there is no
    other result. A run whose inputs are as they were, but outdated themselves, is named with those.
    """
    rows = connection.execute(
        "SELECT r.name, r.parent, a.upstream FROM attempts a JOIN runs r ON r.uid = a.run_uid"
        " WHERE a.upstream <> '' AND r.listed = 1 AND r.attempt = a.number ORDER BY r.name"
    ).fetchall()
    lost = _with_lost_volumes(connection)
    if not rows:
        return Lineage({name: changes for name, (_, changes) in lost.items()}, {})
    # Elements of a sweep that wait for the same were written the same text.
    known: dict[str, list[_Entry]] = {text: json.loads(text) for *_, text in rows}
    recorded = {text: [one for one in found if _is_whole(one)] for text, found in known.items()}
    inputs = Inputs(connection)
    inputs.read(one[0] for found in recorded.values() for one in found)
    earlier = _EarlierForm(connection)
    changes = {
        text: sorted({change for one in found for change in _changes(inputs, earlier, one)})
        for text, found in known.items()
    }
    outdated = {name: tuple(changes[text]) for name, _, text in rows if changes[text]}
    parents = {name: parent for name, parent, _ in rows}
    for name, (parent, found) in lost.items():
        parents[name] = parent
        outdated[name] = (*found, *outdated.get(name, ()))
    dependents: dict[str, list[str]] = {}
    for name, _, text in rows:
        for one in recorded[text]:
            dependents.setdefault(one[0], []).append(name)
    return Lineage(_with_dependents(connection, parents, dependents, outdated), dependents)


def _with_lost_volumes(
    connection: Statements,
) -> dict[str, tuple[str, tuple[InputChange, ...]]]:
    """
    Find the runs that mounted a volume before it lost its data: parent and changes by name.

    Whether a run read or wrote there is not known. Either way its result cannot be used as it was.
    """
    lost = {
        name: json.loads(outputs)[LOST_AT]
        for name, outputs in connection.execute(
            "SELECT name, outputs FROM resources"
            f" WHERE kind = 'volume' AND outputs LIKE '%\"{LOST_AT}\"%'"
        ).fetchall()
    }
    if not lost:
        return {}
    found = {}
    for name, parent, document, placed_ms in connection.execute(
        "SELECT r.name, r.parent, r.document, a.reserved_at_ms FROM runs r"
        " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE r.listed = 1 AND a.reserved_at_ms <= ? AND r.document LIKE '%\"volumes\"%'"
        " ORDER BY r.name",
        (max(lost.values()),),
    ):
        mounted = sorted(one for one in mounted_volumes(document) if lost.get(one, 0) >= placed_ms)
        if mounted:
            found[name] = parent, tuple(InputChange(one, InputEvent.LOST) for one in mounted)
    return found


def _changes(inputs: Inputs, earlier: _EarlierForm, entry: _Entry) -> list[InputChange]:
    if not _is_whole(entry):
        return earlier.changes(tuple(entry))
    name, when, before = entry
    if isinstance(before, Mapping) and inputs.family(name) is None:
        results = {element: tuple(one) for element, one in before.items()}
        return input_changes(results, inputs.results(name, when))
    if not inputs.is_complete(name, when) or inputs.fingerprint(name) == before:
        return []
    return [InputChange(name, InputEvent.CHANGED)]


def _is_whole(entry: _Entry) -> bool:
    """Tell whether an entry has the whole set of an input's results."""
    return len(entry) == 3 and isinstance(entry[1], str)


def _with_dependents(
    connection: Statements,
    parents: Mapping[str, str],
    dependents: Mapping[str, Sequence[str]],
    outdated: Mapping[str, tuple[InputChange, ...]],
) -> dict[str, tuple[InputChange, ...]]:
    """Add the runs whose inputs are outdated themselves, however many runs lie between."""
    inherited = dict(
        connection.execute("SELECT name, parent FROM runs WHERE listed = 1 AND stale > 0")
    )
    found: dict[str, list[InputChange]] = {}
    told: set[str] = set()
    reached = [*outdated, *inherited]
    for name in reached:
        # A sweep is outdated with any of its elements, and is told of once.
        for key in (name, parents.get(name) or inherited.get(name, "")):
            if not key or key in told:
                continue
            told.add(key)
            for dependent in dependents.get(key, ()):
                found.setdefault(dependent, []).append(InputChange(key, InputEvent.OUTDATED))
                reached.append(dependent)
    indirect = {name: tuple(sorted(set(changes))) for name, changes in found.items()}
    return dict(sorted({**indirect, **outdated}.items()))


@dataclass(frozen=True, slots=True)
class _EarlierForm:
    """Judges entries that have no whole set: a run, or a large sweep, that was run again."""

    connection: Statements
    _known: dict[_Key, list[InputChange]] = field(default_factory=dict)

    def changes(self, entry: _Key) -> list[InputChange]:
        if entry not in self._known:
            name = self._sweep(entry) if entry[0].endswith(_FAMILY) else self._run(*entry)
            event = InputEvent.CHANGED if len(entry) == 3 else InputEvent.RERUN
            self._known[entry] = [InputChange(name, event)] if name else []
        return self._known[entry]

    def _sweep(self, entry: _Key) -> str:
        name = entry[0].removesuffix(_FAMILY)
        latest, attempts, open_ = self.connection.execute(
            "SELECT coalesce(max(number), 0), CAST(coalesce(sum(attempt), 0) AS BIGINT),"
            " coalesce(sum(CASE WHEN state <> 'done' THEN 1 ELSE 0 END), 0)"
            " FROM runs WHERE parent = ? AND listed = 1",
            (name,),
        ).fetchone()
        return name if latest and not open_ and (latest, attempts) != entry[1:] else ""

    def _run(self, uid: str, attempt: int) -> str:
        row = self.connection.execute(
            "SELECT n.name, n.uid, n.attempt FROM runs r JOIN runs n ON n.name = r.name"
            " WHERE r.uid = ? AND n.listed = 1 AND n.state = 'done'",
            (uid,),
        ).fetchone()
        return "" if row is None or row[1:] == (uid, attempt) else str(row[0])


# Why runs were aborted, and whether what they waited for is fine by now.
# Everything that shows the message of a run to people reads it from here, so that a reason that has
# become history reads the same in every list.

_ABORTED = (
    "SELECT uid, name, element, message, document, listed FROM runs"
    " WHERE final = 1 AND state = 'aborted' AND cause = ? ORDER BY number"
)


def read_abort_reasons(connection: Statements) -> dict[str, str]:
    """Say by uid why runs were aborted for a dependency: of all that there are, also removed ones."""
    rows = connection.execute(_ABORTED, (DEPENDENCY,)).fetchall()
    if not rows:
        return {}
    wanted = {uid: json.loads(document).get("depends_on", {}) for uid, *_, document, _ in rows}
    inputs = Inputs(connection)
    inputs.read(name for uid, _, element, *_ in rows for name, _ in inputs_of(element, wanted[uid]))
    found = {}
    for uid, name, element, message, _, listed in rows:
        # Elements with the same reason share one line of a list, so they are not named one by one.
        address = "NAME" if element else name
        met = _met(inputs, element, wanted[uid]) if listed else []
        found[uid] = abort_reason(message) + since_met(met, address)
    return found


def _met(inputs: Inputs, element: str, wanted: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name what a run depends on and what has come about; empty where it would not start now."""
    names = inputs_of(element, wanted)
    met = [one for one in names if inputs.is_complete(*one)]
    if wanted.get("all", True) and len(met) < len(names):
        return []
    return [(f"{'' if inputs.is_run(name) else ALL_OF}{name}", when) for name, when in met]

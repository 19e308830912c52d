"""
The statements on rows of `resources` that several kinds share.

A row says what was applied of one document. Statements that one kind alone needs stand in its module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.store.database import Transaction, to_json

if TYPE_CHECKING:
    from fleetform.model.plan import Step
    from fleetform.model.ports import Ids
    from fleetform.spec.desired import ResourceKey

__all__ = [
    "SHOWN_VERBS",
    "Context",
    "ResourceRow",
    "archive_runs",
    "clear_operation",
    "delete_resource",
    "drop_making_volume",
    "drop_making_volumes",
    "fail_step",
    "mark_interrupted",
    "put_resources",
    "resource_uid",
    "write_resource",
]


class ResourceRow(NamedTuple):
    """A row as a document declares it; `document` is JSON."""

    kind: str
    name: str
    uid: str
    type: str
    digest: str
    execution_digest: str
    own_digest: str
    protected: int
    parent: str
    element: str
    rerun_mark: int
    document: str


def put_resources(transaction: Transaction, rows: Iterable[ResourceRow]) -> None:
    """Write rows, also over earlier ones and tombstones of the same names."""
    transaction.many(
        "INSERT INTO resources (kind, name, uid, type, generation, digest, execution_digest,"
        " own_digest, state, protected, parent, element, rerun_mark, document)"
        " VALUES (?, ?, ?, ?, 1, ?, ?, ?, 'present', ?, ?, ?, ?, ?)"
        " ON CONFLICT (kind, name) DO UPDATE SET uid = excluded.uid, type = excluded.type,"
        " generation = resources.generation + 1, digest = excluded.digest,"
        " execution_digest = excluded.execution_digest, own_digest = excluded.own_digest,"
        " archived = 0, protected = excluded.protected, parent = excluded.parent,"
        " element = excluded.element,"
        " rerun_mark = max(resources.rerun_mark, excluded.rerun_mark),"
        " document = excluded.document",
        rows,
    )


def write_resource(
    transaction: Transaction,
    key: ResourceKey,
    said: Mapping[str, Any],
    outputs: Mapping[str, Any],
) -> None:
    """Write what a step on a fleet or volume has brought about; `said` are its arguments."""
    transaction.execute(
        "UPDATE resources SET generation = generation + 1, digest = ?, execution_digest = ?,"
        " own_digest = ?, state = 'present', archived = 0, protected = ?, document = ?, outputs = ?"
        " WHERE kind = ? AND name = ?",
        (
            said["digest"],
            said["execution_digest"],
            said["own_digest"],
            int(said.get("protected", False)),
            to_json(said["document"]),
            to_json(outputs),
            *key,
        ),
    )


def resource_uid(transaction: Transaction, key: ResourceKey) -> str:
    """Return the uid of a row, also of a tombstone; empty without one."""
    row = transaction.one("SELECT uid FROM resources WHERE kind = ? AND name = ?", key)
    return str(row[0]) if row is not None else ""


def delete_resource(transaction: Transaction, key: ResourceKey) -> str:
    """Delete a row; returns its uid, empty without one."""
    row = transaction.one("DELETE FROM resources WHERE kind = ? AND name = ? RETURNING uid", key)
    return str(row[0]) if row is not None else ""


def archive_runs(transaction: Transaction, names: Iterable[str]) -> None:
    """Turn the rows of runs that the configuration no longer declares into tombstones."""
    transaction.many(
        "UPDATE resources SET archived = 1, generation = generation + 1"
        " WHERE kind = 'run' AND name = ? AND archived = 0",
        ((name,) for name in names),
    )


# -- what a step leaves that did not come to its end ----------------------------------------------

# Without a digest a row differs from whatever is declared, so the next plan shows it.
_CHANGED = "digest = '', execution_digest = '', own_digest = '', state = 'failed'"


def fail_step(context: Context, step: Step) -> None:
    """
    Leave the row to the next plan: without a digest it differs from whatever is declared.

    What was to be removed may be gone all the same, when only the answer was lost. If it is declared again as it was, it is
    created again, and not only recorded.
    """
    context.transaction.execute(
        f"UPDATE resources SET {_CHANGED} WHERE kind = ? AND name = ? AND archived = 0",  # noqa: S608 -- a constant
        step.resource,
    )


def mark_interrupted(transaction: Transaction, apply_uid: str) -> None:
    """Leave what an apply has begun without an outcome as a failed step leaves it."""
    transaction.execute(
        f"UPDATE resources SET {_CHANGED}"  # noqa: S608 -- a constant
        " WHERE kind IN ('fleet', 'volume') AND operation = ? AND state = 'present'"
        " AND EXISTS (SELECT 1 FROM operations o WHERE o.apply_uid = ? AND o.state = 'intended'"
        " AND o.resource_kind = resources.kind AND o.resource_name = resources.name)",
        (apply_uid, apply_uid),
    )


_DROP_MAKING = (
    "UPDATE resources SET archived = 1, state = 'failed' WHERE kind = 'volume' AND state = 'making'"
)


def drop_making_volumes(transaction: Transaction, apply_uid: str) -> None:
    """Turn volumes that an apply could not create into tombstones; see `volumes.fail_make`."""
    transaction.execute(f"{_DROP_MAKING} AND operation = ?", (apply_uid,))


def drop_making_volume(transaction: Transaction, name: str) -> None:
    """Turn one volume into a tombstone, whichever apply has begun to create it."""
    transaction.execute(f"{_DROP_MAKING} AND name = ?", (name,))


def clear_operation(transaction: Transaction, apply_uid: str, keys: Iterable[ResourceKey]) -> None:
    """Say of rows that no step of this apply works on them."""
    transaction.many(
        "UPDATE resources SET operation = '' WHERE kind = ? AND name = ? AND operation = ?",
        ((*key, apply_uid) for key in keys),
    )


# What the steps of one apply share while they are written down.

SHOWN_VERBS = {
    "made": "created",
    "imported": "adopted",
    "taken back": "restored with its data",
}
"""What the sentence of an event says where the kind of the event has an older word."""


@dataclass(frozen=True, slots=True)
class Context:
    """
    `commit`, `who` and `owner` are the apply's; every run that it submits has them.

    `refused` collects the sentences of steps that could not be written down as asked, by key.
    """

    transaction: Transaction
    apply_uid: str
    commit: str
    who: str
    now_ms: int
    ids: Ids
    refused: dict[str, str] = field(default_factory=dict)
    owner: str = ""

    def log(self, event: str, what: str, resource: ResourceKey) -> None:
        """Append an event about a resource; `what` follows its kind and name: `was removed`."""
        sentence = f"{resource.kind} {resource.name} {what}"
        self.transaction.log(event, self.now_ms, sentence, resource)

    @classmethod
    def of(cls, transaction: Transaction, apply_uid: str, now_ms: int, ids: Ids) -> Context:
        row = transaction.one(
            "SELECT tree_commit, who, owner FROM applies WHERE uid = ? AND state = 'running'",
            (apply_uid,),
        )
        assert row is not None, f"apply {apply_uid} is not running"
        commit, who, owner = row
        return cls(transaction, apply_uid, commit, who, now_ms, ids, owner=owner)

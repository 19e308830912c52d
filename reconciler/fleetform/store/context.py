"""What the steps of one apply share while they are written down."""

from __future__ import annotations

from dataclasses import dataclass, field

from fleetform.model.ports import Ids
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction

__all__ = ["SHOWN_VERBS", "Context"]

SHOWN_VERBS = {
    "made": "created",
    "imported": "adopted",
    "taken back": "restored with its data",
}
"""What the sentence of an event says where the kind of the event has an older word."""


@dataclass(frozen=True, slots=True)
class Context:
    """
    `commit` and `who` are the apply's; every run that it submits has them.

    `refused` collects the sentences of steps that could not be written down as asked, by key.
    """

    transaction: Transaction
    apply_uid: str
    commit: str
    who: str
    now_ms: int
    ids: Ids
    refused: dict[str, str] = field(default_factory=dict)

    def log(self, resource: ResourceKey, event: str, what: str) -> None:
        """Append an event about a resource; `what` follows its kind and name: `was removed`."""
        sentence = f"{resource.kind} {resource.name} {what}"
        self.transaction.log(event, self.now_ms, sentence, resource)

    @classmethod
    def of(cls, transaction: Transaction, apply_uid: str, now_ms: int, ids: Ids) -> Context:
        row = transaction.one(
            "SELECT tree_commit, who FROM applies WHERE uid = ? AND state = 'running'", (apply_uid,)
        )
        assert row is not None, f"apply {apply_uid} is not running"
        commit, who = row
        return cls(transaction, apply_uid, commit, who, now_ms, ids)

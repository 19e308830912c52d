"""Queues' rows: a queue is its document, and nothing of it is outside the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.model.plan import Step
from fleetform.model.ports import StepOutcome
from fleetform.store.context import Context
from fleetform.store.database import to_json

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["finish_remove", "finish_set", "read_queues"]


def read_queues(connection: Statements) -> tuple[dict[str, tuple[str, ...]], str]:
    """Read the fleets of each queue, by its name, and the name of the default queue or nothing."""
    fleets: dict[str, tuple[str, ...]] = {}
    default = ""
    for name, text in connection.execute(
        "SELECT name, document FROM resources WHERE kind = 'queue' ORDER BY name"
    ):
        document = json.loads(text)
        fleets[name] = tuple(document.get("fleets", ()))
        if document.get("default"):
            default = name
    return fleets, default


def finish_set(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        said = step.arguments
        (generation,) = context.transaction.one(
            "INSERT INTO resources (kind, name, uid, type, generation, digest, execution_digest,"
            " own_digest, state, protected, document)"
            " VALUES ('queue', ?, ?, 'queue', 1, ?, ?, ?, 'present', ?, ?)"
            " ON CONFLICT (kind, name) DO UPDATE SET generation = resources.generation + 1,"
            " digest = excluded.digest, execution_digest = excluded.execution_digest,"
            " own_digest = excluded.own_digest, protected = excluded.protected,"
            " document = excluded.document RETURNING generation",
            (
                step.resource.name,
                context.ids.uid(),
                said["digest"],
                said["execution_digest"],
                said["own_digest"],
                int(said.get("protected", False)),
                to_json(said["document"]),
            ),
        ) or (1,)
        verb = "created" if generation == 1 else "updated"
        context.transaction.log(
            f"queue.{verb}",
            context.now_ms,
            f"queue {step.resource.name} was {verb}",
            step.resource,
        )


def finish_remove(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        context.transaction.execute(
            "DELETE FROM resources WHERE kind = 'queue' AND name = ?", (step.resource.name,)
        )
        context.transaction.log(
            "queue.removed",
            context.now_ms,
            f"queue {step.resource.name} was removed",
            step.resource,
        )

"""
Rows of kinds without tables of their own: a row of `resources` with the document, and nothing else.

What acts on hosts gets its row with the intent, so that it has a uid before anything is created
there; the row of anything else is written with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fleetform.model.verbs import VERBS, Effect, Verb
from fleetform.store.database import to_json
from fleetform.store.resources import Context, delete_resource

if TYPE_CHECKING:
    from fleetform.model.apply import StepOutcome
    from fleetform.model.plan import Step

__all__ = ["FINISH", "begin", "fail"]


def begin(context: Context, step: Step) -> None:
    """Give what is to be created a row, a tombstone until it exists, or take up the one that a failed attempt has left."""
    if "document" not in step.arguments:
        return
    context.transaction.execute(
        "INSERT INTO resources (kind, name, uid, type, state, archived, document, operation)"
        " VALUES (?, ?, ?, ?, 'making', 1, '{}', ?)"
        " ON CONFLICT (kind, name) DO UPDATE SET state = 'making'"
        " WHERE resources.archived = 1",
        (*step.resource, context.ids.uid(), step.arguments["type"], context.apply_uid),
    )


def fail(context: Context, step: Step) -> None:
    """
    Keep the uid of what could not be created, as a tombstone: it may exist under that uid.

    What exists is left to the next plan: without a digest it differs from whatever is declared.
    """
    context.transaction.execute(
        "UPDATE resources SET digest = '', execution_digest = '', own_digest = '',"
        " state = 'failed' WHERE kind = ? AND name = ?",
        (*step.resource,),
    )


def _write(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        said = step.arguments
        (generation,) = context.transaction.one(
            "INSERT INTO resources (kind, name, uid, type, generation, digest, execution_digest,"
            " own_digest, state, protected, document)"
            " VALUES (?, ?, ?, ?, 1, ?, ?, ?, 'present', ?, ?)"
            " ON CONFLICT (kind, name) DO UPDATE SET generation = resources.generation + 1,"
            " digest = excluded.digest, execution_digest = excluded.execution_digest,"
            " own_digest = excluded.own_digest, state = excluded.state, archived = 0,"
            " protected = excluded.protected, document = excluded.document RETURNING generation",
            (
                *step.resource,
                context.ids.uid(),
                said["type"],
                said["digest"],
                said["execution_digest"],
                said["own_digest"],
                int(said.get("protected", False)),
                to_json(said["document"]),
            ),
        ) or (1,)
        _log(context, step, "created" if generation == 1 else "updated")


def _remove(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        delete_resource(context.transaction, step.resource)
        stays = VERBS[Verb(step.verb)].effect is Effect.RELEASE
        _log(context, step, "released" if stays else "removed")


def _log(context: Context, step: Step, what: str) -> None:
    context.log(f"{step.resource.kind}.{what}", f"was {what}", step.resource)


FINISH: Mapping[Effect, Callable[[Context, Sequence[Step], Sequence[StepOutcome]], None]] = {
    Effect.CREATE: _write,
    Effect.ADOPT: _write,
    Effect.SET: _write,
    Effect.UPDATE: _write,
    Effect.DELETE: _remove,
    Effect.RELEASE: _remove,
}

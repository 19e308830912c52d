"""
Steps of a plan written down: the intent before the world is touched, the outcome after.

What a verb means for the rows of its kind is said in `fleets`, `volumes`, `queues`, `submissions` and `moves`;
here is only what all steps have in common. A step that is done already is passed over, so that an
outcome may be given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from fleetform.model.plan import Step
from fleetform.model.ports import Begun, Ids, StepOutcome
from fleetform.store import fleets, queues, renames, submissions, volumes
from fleetform.store.context import Context
from fleetform.store.database import Transaction, to_json

__all__ = ["begin_steps", "finish_steps"]

_BEGIN: Mapping[str, Callable[[Context, Step], None]] = {
    "fleet.make": fleets.begin_make,
    "fleet.adopt": fleets.begin_adopt,
    "fleet.update": fleets.begin_update,
    "fleet.remove": fleets.begin_remove,
    "volume.make": volumes.begin_make,
    "volume.adopt": volumes.begin_make,
}

_FAIL: Mapping[str, Callable[[Context, Step], None]] = {
    "fleet.make": fleets.fail,
    "fleet.adopt": fleets.fail,
    "fleet.update": fleets.fail,
    "fleet.remove": fleets.fail,
    "volume.make": volumes.fail_make,
    "volume.adopt": volumes.fail_make,
    "volume.remove": volumes.fail_drop,
    "volume.snapshot": volumes.fail_drop,
}


def _set_rules(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        context.transaction.execute(
            "UPDATE meta SET rules = ?", (to_json(step.arguments["rules"]),)
        )
        context.transaction.log("rules.set", context.now_ms, "the environment's rules were changed")


_FINISH: Mapping[str, Callable[[Context, Sequence[Step], Sequence[StepOutcome]], None]] = {
    "fleet.make": fleets.finish_write,
    "fleet.update": fleets.finish_write,
    "fleet.remove": fleets.finish_remove,
    "fleet.adopt": fleets.finish_write,
    "fleet.forget": fleets.finish_forget,
    "volume.make": volumes.finish_write,
    "volume.adopt": volumes.finish_write,
    "volume.update": volumes.finish_write,
    "volume.forget": volumes.finish_drop,
    "volume.remove": volumes.finish_drop,
    "volume.snapshot": volumes.finish_snapshot,
    "queue.set": queues.finish_set,
    "queue.remove": queues.finish_remove,
    "run.submit": submissions.submit,
    "run.update": submissions.update,
    "run.stop": submissions.stop,
    "run.archive": submissions.archive,
    "run.restore": submissions.restore,
    "run.forget": submissions.forget,
    "resource.move": renames.move,
    "rules.set": _set_rules,
}


def begin_steps(
    transaction: Transaction, apply_uid: str, steps: Sequence[Step], *, now_ms: int, ids: Ids
) -> Mapping[str, Begun]:
    """See `model.ports.Ledger.begin_steps`."""
    context = Context.of(transaction, apply_uid, now_ms, ids)
    known = _operations(transaction, apply_uid)
    begun: dict[str, Begun] = {}
    for step in steps:
        uid, state = known[step.key]
        if state != "done":
            uid = uid or ids.uid()
            transaction.execute(
                "UPDATE operations SET state = 'intended', uid = ? WHERE apply_uid = ? AND key = ?",
                (uid, apply_uid, step.key),
            )
            if (begin := _BEGIN.get(step.verb)) is not None:
                begin(context, step)
        resource = transaction.one(
            "SELECT uid FROM resources WHERE kind = ? AND name = ?", step.resource
        )
        begun[step.key] = Begun(uid, resource[0] if resource else "")
    return begun


def finish_steps(
    transaction: Transaction,
    apply_uid: str,
    steps: Sequence[Step],
    outcomes: Sequence[StepOutcome],
    *,
    now_ms: int,
    ids: Ids,
) -> Mapping[str, str]:
    """See `model.ports.Ledger.finish_steps`."""
    context = Context.of(transaction, apply_uid, now_ms, ids)
    known = _operations(transaction, apply_uid)
    pairs: list[tuple[Step, StepOutcome]] = []
    for step, outcome in zip(steps, outcomes, strict=True):
        assert step.key == outcome.key, "outcomes come in the order of their steps"
        if known[step.key][1] != "done":
            pairs.append((step, outcome))
    transaction.many(
        "UPDATE operations SET state = ?, error = ?, finished_at_ms = ?"
        " WHERE apply_uid = ? AND key = ?",
        (
            ("failed" if outcome.error else "done", outcome.error, now_ms, apply_uid, step.key)
            for step, outcome in pairs
        ),
    )
    # Neighbours with one verb go in one batch; their order beyond that is the plan's.
    for (verb, failed), group in groupby(pairs, lambda pair: (pair[0].verb, bool(pair[1].error))):
        members = list(group)
        if failed:
            _write_failures(context, members)
        else:
            _FINISH[verb](context, [step for step, _ in members], [one for _, one in members])
    transaction.many(
        "UPDATE operations SET state = 'failed', error = ? WHERE apply_uid = ? AND key = ?",
        ((sentence, apply_uid, key) for key, sentence in context.refused.items()),
    )
    transaction.many(
        "UPDATE resources SET operation = '' WHERE kind = ? AND name = ? AND operation = ?",
        ((*step.resource, apply_uid) for step, _ in pairs),
    )
    return context.refused


def _write_failures(context: Context, pairs: Sequence[tuple[Step, StepOutcome]]) -> None:
    for step, outcome in pairs:
        if (fail := _FAIL.get(step.verb)) is not None:
            fail(context, step)
        context.transaction.log(
            "step.failed",
            context.now_ms,
            f"{step.verb} of {step.resource} failed: {outcome.error}",
            step.resource,
        )


def _operations(transaction: Transaction, apply_uid: str) -> dict[Any, tuple[str, str]]:
    return {
        key: (uid, state)
        for key, uid, state in transaction.execute(
            "SELECT key, uid, state FROM operations WHERE apply_uid = ?", (apply_uid,)
        )
    }

"""
Steps of a plan written down: the intent before any effect, the outcome after.

What a verb means for the rows of its kind is said in `fleets`, `volumes`, `submissions` and `renames`, or
in `document_rows` for a kind without tables of its own; here is only what all steps have in common. A step that is done already is passed over, so that an
outcome may be given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fleetform.model.apply import Begun, StepOutcome
from fleetform.model.ports import Ids
from fleetform.model.verbs import ACTS_ON_HOSTS, VERBS, Verb
from fleetform.store import document_rows, fleets, renames, submissions, volumes
from fleetform.store.database import Transaction, to_json
from fleetform.store.resources import Context, clear_operation, fail_step, resource_uid

if TYPE_CHECKING:
    from fleetform.model.plan import Step

__all__ = ["begin_steps", "finish_steps"]

_BEGIN: dict[str, Callable[[Context, Step], None]] = {
    Verb.FLEET_MAKE: fleets.begin_make,
    Verb.FLEET_ADOPT: fleets.begin_adopt,
    Verb.FLEET_UPDATE: fleets.begin_update,
    Verb.FLEET_REMOVE: fleets.begin_remove,
    Verb.VOLUME_MAKE: volumes.begin_make,
    Verb.VOLUME_ADOPT: volumes.begin_make,
}

_FAIL: dict[str, Callable[[Context, Step], None]] = {
    Verb.FLEET_MAKE: fail_step,
    Verb.FLEET_ADOPT: fail_step,
    Verb.FLEET_UPDATE: fail_step,
    Verb.FLEET_REMOVE: fail_step,
    Verb.VOLUME_MAKE: volumes.fail_make,
    Verb.VOLUME_ADOPT: volumes.fail_make,
    Verb.VOLUME_REMOVE: fail_step,
    Verb.VOLUME_SNAPSHOT: fail_step,
}


def _set_rules(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        rules = to_json(step.arguments["rules"])
        context.transaction.execute("UPDATE meta SET rules = ?", (rules,))
        context.transaction.log("rules.set", context.now_ms, "the environment's rules were changed")


_FINISH: dict[str, Callable[[Context, Sequence[Step], Sequence[StepOutcome]], None]] = {
    Verb.FLEET_MAKE: fleets.finish_write,
    Verb.FLEET_UPDATE: fleets.finish_write,
    Verb.FLEET_REMOVE: fleets.finish_remove,
    Verb.FLEET_ADOPT: fleets.finish_write,
    Verb.FLEET_FORGET: fleets.finish_forget,
    Verb.VOLUME_MAKE: volumes.finish_write,
    Verb.VOLUME_ADOPT: volumes.finish_write,
    Verb.VOLUME_UPDATE: volumes.finish_write,
    Verb.VOLUME_WITHDRAW: volumes.finish_withdraw,
    Verb.VOLUME_FORGET: volumes.finish_drop,
    Verb.VOLUME_REMOVE: volumes.finish_drop,
    Verb.VOLUME_SNAPSHOT: volumes.finish_snapshot,
    Verb.RUN_SUBMIT: submissions.submit,
    Verb.RUN_UPDATE: submissions.update,
    Verb.RUN_STOP: submissions.stop,
    Verb.RUN_ARCHIVE: submissions.archive,
    Verb.RUN_RESTORE: submissions.restore,
    Verb.RUN_FORGET: submissions.forget,
    Verb.RESOURCE_MOVE: renames.move,
    Verb.RULES_SET: _set_rules,
}
_OF_DOCUMENTS = frozenset(VERBS) - _FINISH.keys()
_FINISH.update((verb, document_rows.FINISH[VERBS[verb].effect]) for verb in _OF_DOCUMENTS)
_BEGIN.update((verb, document_rows.begin) for verb in _OF_DOCUMENTS & ACTS_ON_HOSTS)
_FAIL.update((verb, document_rows.fail) for verb in _OF_DOCUMENTS & ACTS_ON_HOSTS)


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
        begun[step.key] = Begun(uid, resource_uid(transaction, step.resource))
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
    clear_operation(transaction, apply_uid, (step.resource for step, _ in pairs))
    return context.refused


def _write_failures(context: Context, pairs: Sequence[tuple[Step, StepOutcome]]) -> None:
    for step, outcome in pairs:
        if (fail := _FAIL.get(step.verb)) is not None:
            fail(context, step)
        sentence = f"the change of {step.resource} failed: {outcome.error}"
        context.transaction.log("step.failed", context.now_ms, sentence, step.resource)


def _operations(transaction: Transaction, apply_uid: str) -> dict[Any, tuple[str, str]]:
    return {
        key: (uid, state)
        for key, uid, state in transaction.execute(
            "SELECT key, uid, state FROM operations WHERE apply_uid = ?", (apply_uid,)
        )
    }

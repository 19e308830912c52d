"""
Runs' rows as a plan asks for them: submitted, changed in place, stopped, archived, restored.

The resource's row says what the configuration declares and the run's row what was frozen for execution; they
differ while a finished run is `stale`. Submitting a name again makes another run: the earlier one
keeps its row, its attempts and its number in the history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetform.model.plan import Step, outdated_by
from fleetform.model.run import RunState
from fleetform.model.run_state import Outdated
from fleetform.spec.fields import EXECUTION_FIELDS
from fleetform.spec.names import natural_order
from fleetform.store.database import Transaction, to_json
from fleetform.store.resources import (
    Context,
    ResourceRow,
    archive_runs,
    delete_resource,
    put_resources,
)
from fleetform.store.runs import insert_attempts, list_runs, list_runs_of

if TYPE_CHECKING:
    from fleetform.model.apply import StepOutcome

__all__ = [
    "archive",
    "forget",
    "insert_jobs",
    "restore",
    "stop",
    "submit",
    "update",
]


# -- submit -------------------------------------------------------------------------------


def submit(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    """
    Write the runs in natural order of their names: `array[2]` before `array[10]`.

    Runs of one priority start by their numbers, and steps come in alphabetical order.
    """
    transaction, now_ms = context.transaction, context.now_ms
    ordered = sorted(steps, key=lambda step: natural_order(step.resource.name))
    earlier = _displace(transaction, [step.resource.name for step in ordered])
    (last,) = transaction.one("SELECT coalesce(max(number), 0) FROM runs") or (0,)
    uids = [context.ids.uid() for _ in ordered]
    runs: list[tuple[Any, ...]] = []
    resources: list[ResourceRow] = []
    jobs: list[tuple[str, int, int, str]] = []
    for number, (uid, step) in enumerate(zip(uids, ordered, strict=True), last + 1):
        name, said = step.resource.name, step.arguments
        document, text = said["document"], to_json(said["document"])
        type_ = said.get("type", "task")
        parent, element = said.get("parent", ""), said.get("element", "")
        replaces, still_open = earlier.get(name, ("", ""))
        # An earlier run of the same name must be over first: both may write to the same places.
        after_uid = said.get("after_uid") or still_open
        nodes = document.get("nodes", 1)
        waits = document.get("depends_on") or after_uid
        state = RunState.PENDING if waits else RunState.SUBMITTED
        runs.append(
            (number, uid, name, type_, parent, element, state, nodes, now_ms,
             said["execution_digest"], replaces, after_uid, context.commit, context.who,
             context.owner, text)
        )  # fmt: skip
        resources.append(
            ResourceRow(
                "run", name, uid, type_, said["digest"], said["execution_digest"],
                said["own_digest"], int(said.get("protected", False)), parent, element,
                document.get("rerun", 0), text,
            )
        )  # fmt: skip
        jobs.extend((uid, 1, rank, context.ids.uid()) for rank in range(nodes))
        context.log("run.submitted", "was submitted", step.resource)
    transaction.many(_INSERT_RUN, runs)
    put_resources(transaction, resources)
    insert_attempts(transaction, ((uid, 1) for uid in uids), now_ms=now_ms)
    insert_jobs(transaction, jobs)


_INSERT_RUN = (
    "INSERT INTO runs (number, uid, name, type, parent, element, state, listed, nodes, attempt,"
    " submitted_at_ms, execution_digest, replaces, after_uid, tree_commit, who, owner, document)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def insert_jobs(transaction: Transaction, jobs: Sequence[tuple[str, int, int, str]]) -> None:
    """Write waiting jobs: (run uid, attempt, rank, job uid)."""
    transaction.many(
        "INSERT INTO jobs (run_uid, attempt, rank, uid, state) VALUES (?, ?, ?, ?, 'waiting')", jobs
    )


def _displace(transaction: Transaction, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """
    Take earlier runs of these names off the list.

    Returns, by name, the uid of the one whose place is taken, and of the latest that may still be
    at work: mostly the same, but what is displaced may itself have waited for another.
    """
    rows = transaction.execute(
        "SELECT s.name, s.uid, (SELECT r.uid FROM runs r WHERE r.name = s.name AND (r.final = 0"
        " OR EXISTS (SELECT 1 FROM jobs j WHERE j.run_uid = r.uid AND j.state <> 'finished'))"
        # What has begun before what waits for it.
        " ORDER BY (SELECT count(*) FROM jobs j WHERE j.run_uid = r.uid"
        " AND j.state NOT IN ('waiting', 'finished')) = 0, r.number DESC LIMIT 1)"
        " FROM resources s JOIN runs n ON n.uid = s.uid"
        " WHERE s.kind = 'run' AND s.name IN (SELECT value FROM json_each(?))",
        (to_json(list(names)),),
    )
    earlier = {name: (uid, still_open or "") for name, uid, still_open in rows}
    list_runs(transaction, [uid for uid, _ in earlier.values()], listed=False)
    return earlier


# -- change in place ----------------------------------------------------------------------


def update(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        _update_one(context, step)


def _update_one(context: Context, step: Step) -> None:
    """
    Give a run another document, as far as where it stands allows.

    Waiting: all of it. Running: what does not change its execution; `state: stopped` ends it all the same, and another
    execution waits until it runs again. Over: the resource alone, for what was executed stays what it was. With `earlier`:
    the name belongs to that run again. A change that does not concern the execution applies also to an earlier run that has
    not ended.
    """
    transaction, said, name = context.transaction, step.arguments, step.resource.name
    if (earlier := said.get("earlier")) and not _give_back(context, step, earlier):
        return
    row = transaction.one(
        "SELECT r.uid, r.final, r.execution_digest, r.nodes, r.attempt, a.state"
        # A run of which a rebuild has found no evidence has no attempt either.
        " FROM resources s JOIN runs r ON r.uid = s.uid"
        " LEFT JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE s.kind = 'run' AND s.name = ?",
        (name,),
    )
    assert row is not None, f"{step.resource} has no run"
    uid, final, executed, nodes, attempt, attempt_state = row
    waits = attempt_state == "waiting" and not final
    deferred = not final and not waits and said["execution_digest"] != executed
    if deferred and said["document"].get("state") != "stopped":
        _refuse(context, step, "so its execution was not changed")
        return
    _write_resource(transaction, step)
    # Where it began after the plan was made, the plan does not say that its result will be outdated.
    outdated = outdated_by(step) or (Outdated.DOCUMENT if deferred else Outdated.NO)
    transaction.execute("UPDATE runs SET stale = ? WHERE uid = ?", (int(outdated), uid))
    if deferred:
        _drive(transaction, uid, said["document"])
    elif not final:
        wanted = said["document"].get("nodes", 1)
        transaction.execute(
            "UPDATE runs SET document = ?, execution_digest = ?, nodes = ?, type = ?,"
            " generation = generation + 1 WHERE uid = ?",
            (to_json(said["document"]), said["execution_digest"], wanted, said["type"], uid),
        )
        if wanted != nodes:
            _resize(context, uid, attempt, wanted)
        _drive_earlier(transaction, name, uid, said["document"])
    context.log("run.updated", "was changed", step.resource)


def _drive_earlier(
    transaction: Transaction, name: str, uid: str, document: Mapping[str, Any]
) -> None:
    """Apply fields that are not part of the execution to an earlier run of the name that has not ended, too."""
    rows = transaction.execute(
        "SELECT uid FROM runs WHERE name = ? AND final = 0 AND uid <> ?", (name, uid)
    ).fetchall()
    for (earlier,) in rows:
        _drive(transaction, earlier, document)


def _drive(transaction: Transaction, uid: str, document: Mapping[str, Any]) -> None:
    """Give a run those fields of a document that are no part of its execution."""
    (text,) = transaction.one("SELECT document FROM runs WHERE uid = ?", (uid,)) or ("{}",)
    executed = EXECUTION_FIELDS["run"]
    before = json.loads(text)
    driven = {field: value for field, value in document.items() if field not in executed}
    driven.update((field, value) for field, value in before.items() if field in executed)
    if driven != before:
        transaction.execute(
            "UPDATE runs SET document = ?, generation = generation + 1 WHERE uid = ?",
            (to_json(driven), uid),
        )


def _give_back(context: Context, step: Step, earlier: str) -> bool:
    """Give the name back to the running run, and end the one that waits for it."""
    transaction, name = context.transaction, step.resource.name
    if _has_a_place(transaction, name):
        _refuse(context, step, "so it was not withdrawn")
        return False
    works = transaction.one(
        "SELECT 1 FROM runs WHERE uid = ? AND name = ? AND final = 0 AND stop_requested = ''",
        (earlier, name),
    )
    if works is None:
        context.refused[step.key] = (
            f"the run of {name} is ending or has ended, so nothing was withdrawn; plan again to"
            " see the remaining changes"
        )
        return False
    why = f"the running version is declared again, applied by {context.who or 'an unknown user'}"
    transaction.execute(
        "UPDATE runs SET listed = 0, generation = generation + 1, stop_requested ="
        " CASE stop_requested WHEN '' THEN ? ELSE stop_requested END"
        " WHERE uid = (SELECT uid FROM resources WHERE kind = 'run' AND name = ?)",
        (why, name),
    )
    list_runs(transaction, [earlier], listed=True)
    transaction.execute(
        "UPDATE resources SET uid = ? WHERE kind = 'run' AND name = ?", (earlier, name)
    )
    return True


def _has_a_place(transaction: Transaction, name: str) -> bool:
    """Tell whether the run that has the name by now has begun, or is over."""
    row = transaction.one(
        "SELECT 1 FROM resources s JOIN runs r ON r.uid = s.uid"
        " LEFT JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE s.kind = 'run' AND s.name = ? AND (r.final = 1 OR a.state <> 'waiting')",
        (name,),
    )
    return row is not None


def _refuse(context: Context, step: Step, what: str) -> None:
    """Refuse a step whose run was placed after the plan was accepted: the next plan says more."""
    sentence = f"run {step.resource.name} has started, {what}"
    context.refused[step.key] = sentence
    context.transaction.log("step.failed", context.now_ms, sentence, step.resource)


def _write_resource(transaction: Transaction, step: Step) -> None:
    said = step.arguments
    transaction.execute(
        "UPDATE resources SET generation = generation + 1, digest = ?, execution_digest = ?,"
        " own_digest = ?, type = ?, archived = 0, protected = ?,"
        " rerun_mark = max(rerun_mark, ?), document = ? WHERE kind = 'run' AND name = ?",
        (
            said["digest"],
            said["execution_digest"],
            said["own_digest"],
            said["type"],
            int(said.get("protected", False)),
            said["document"].get("rerun", 0),
            to_json(said["document"]),
            step.resource.name,
        ),
    )


def _resize(context: Context, uid: str, attempt: int, nodes: int) -> None:
    """Give a waiting attempt another number of jobs; no host knows any of them."""
    context.transaction.execute(
        "DELETE FROM jobs WHERE run_uid = ? AND attempt = ? AND state = 'waiting'", (uid, attempt)
    )
    insert_jobs(
        context.transaction, [(uid, attempt, rank, context.ids.uid()) for rank in range(nodes)]
    )


# -- stop, archive, restore ---------------------------------------------------------------


# What `why` prints behind "is stopped".
_ENDED_BECAUSE = {
    "state": "its document says `state: stopped`",
    "removed": "its document was removed",
    "destroyed": "the whole environment was destroyed",
    "replaced": "another execution replaces it",
}


def stop(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    """Request the end of the runs; the controller stops them."""
    for step in steps:
        if step.arguments.get("waiting") and _is_at_work(context.transaction, step.resource.name):
            _refuse(
                context,
                step,
                "so it was not stopped: the plan did not include the loss of its work",
            )
            continue
        cause = step.arguments.get("cause") or ""
        why = (
            f"{_ENDED_BECAUSE.get(cause, 'stopped')}, applied by {context.who or 'an unknown user'}"
        )
        asked = context.transaction.execute(
            "UPDATE runs SET stop_requested = ?, generation = generation + 1"
            # An earlier run of the name as well: it would not be listed any more.
            " WHERE name = ? AND final = 0 AND stop_requested = ''",
            (why, step.resource.name),
        )
        if asked.rowcount:
            context.log("run.stop-requested", f"is asked to stop: {why}", step.resource)


def _is_at_work(transaction: Transaction, name: str) -> bool:
    """Tell whether a run has a place by now, or had one a moment ago, and is not over."""
    row = transaction.one(
        "SELECT 1 FROM runs r"
        " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE r.name = ? AND r.final = 0 AND a.state <> 'waiting'",
        (name,),
    )
    return row is not None


def archive(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    names = [step.resource.name for step in steps]
    archive_runs(context.transaction, names)
    list_runs_of(context.transaction, names, listed=False)
    for step in steps:
        context.log(
            "run.archived", "was removed from the configuration; its result is kept", step.resource
        )


def forget(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    """Delete the resource's row; the run's own row, with all its attempts, is the history."""
    for step in steps:
        list_runs_of(context.transaction, [step.resource.name], listed=False)
        delete_resource(context.transaction, step.resource)
        context.log("run.forgotten", "was released; its history is kept", step.resource)


def restore(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        _write_resource(context.transaction, step)
        list_runs_of(context.transaction, [step.resource.name], listed=True)
        context.log(
            "run.restored", "is in the configuration again, with its earlier result", step.resource
        )

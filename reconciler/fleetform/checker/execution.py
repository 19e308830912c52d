"""That nothing runs twice by accident: the promise that runs as desired state stand on."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleetform.checker.context import Reading, has_begun, is_over
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.live import LiveResource
from fleetform.model.plan import Change, Reason, Step
from fleetform.model.recovery import NO_EVIDENCE
from fleetform.model.run_state import Outdated, RunState
from fleetform.model.selection import Selection
from fleetform.spec.desired import Declared
from fleetform.spec.renaming import digests_of


def check_finished_not_rerun(reading: Reading) -> Iterator[Violation]:
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "run.submit" or row is None or not is_over(row):
            continue
        declared = reading.declared(step.resource)
        asked = Reason.REPLACE_ASKED in change.reasons and Selection(
            reading.scope.replaces
        ).selects(step.resource, row.parent)
        if declared is None or not (asked or _has_reason(change, declared, row)):
            yield Violation(
                Invariant.FINISHED_STAYS_FINISHED,
                f"{step.resource} has finished and would run again",
            )


def _has_reason(change: Change, declared: Declared, row: LiveResource) -> bool:
    """Tell whether a reason that the change gives is borne out by row and document."""
    assert row.run is not None
    before = json.loads(row.document)
    after = declared.document
    other = declared.execution_digest != row.execution_digest
    ended_early = row.run.state is RunState.STOPPED and after.get("state") != "stopped"
    borne_out = {
        Reason.EXECUTION_CHANGED: (
            other and (row.archived or declared.own_digest != row.own_digest)
        )
        or (
            row.run.stale is Outdated.DOCUMENT
            and before.get("state") == "stopped" != after.get("state")
        ),
        Reason.RERUN_ASKED: after.get("rerun", 0) > max(before.get("rerun", 0), row.run.rerun_mark),
        Reason.RESUMED: ended_early and (row.archived or before.get("state") == "stopped"),
    }
    return any(borne_out.get(reason, False) for reason in change.reasons)


def _is_vouched_for(declared: Declared | None, row: LiveResource) -> bool:
    """Tell whether a person has asked for a run of which no host has any evidence."""
    if row.run is None or row.run.cause != NO_EVIDENCE or declared is None:
        return False
    before = json.loads(row.document).get("rerun", 0)
    return bool(declared.document.get("rerun", 0) > max(before, row.run.rerun_mark))


def check_one_execution(reading: Reading) -> Iterator[Violation]:
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "run.submit" or row is None:
            continue
        earlier = None if row.run is None else row.run.earlier
        if is_over(row) and earlier is None:
            continue
        if _is_vouched_for(reading.declared(step.resource), row):
            continue
        before = row.uid if earlier is None else earlier.uid
        waits = step.arguments.get("after_uid") == before != ""
        unknown = row.run is not None and row.run.state is RunState.UNKNOWN
        if not waits or unknown:
            yield Violation(
                Invariant.ONE_EXECUTION_AT_A_TIME,
                f"{change.key} would start while its earlier run may still run",
            )


def check_running_unchanged(reading: Reading) -> Iterator[Violation]:
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "run.update" or row is None or is_over(row):
            continue
        if "earlier" in step.arguments and not _is_executed_already(reading, step):
            yield Violation(
                Invariant.RUNNING_KEEPS_ITS_EXECUTION,
                f"{step.resource} would continue an earlier run with another execution",
            )
        if step.arguments.get("execution_digest") == row.execution_digest:
            continue
        ends = _is_stopped(step) and any(
            one.verb == "run.stop" and one.resource == step.resource for one in change.steps
        )
        begun = has_begun(row)
        same = begun and not any(one.field_class == "execution" for one in change.fields)
        known_as = reading.earlier_names.get(step.resource, step.resource)
        pinned = ("run-not-started", known_as) in reading.claims
        if not (ends or same or (pinned and not begun)):
            yield Violation(
                Invariant.RUNNING_KEEPS_ITS_EXECUTION,
                f"{step.resource} would get another execution while it may run",
            )


def _is_stopped(step: Step) -> bool:
    """Tell whether the document that a step writes defers its execution until the run runs again."""
    return bool(step.arguments["document"].get("state") == "stopped")


def _is_executed_already(reading: Reading, step: Step) -> bool:
    """Tell whether the run whose name it was executes what is declared, and goes on with it."""
    row, declared = reading.row(step.resource), reading.declared(step.resource)
    if row is None or row.run is None or declared is None or has_begun(row):
        return False
    earlier = row.run.earlier
    if earlier is None:
        return False
    _, executed = digests_of("run", json.loads(earlier.document))
    said = (step.arguments["earlier"], declared.execution_digest)
    return said == (earlier.uid, executed) and not earlier.ending

"""
Changes of a run, which must never run again by accident.

What a changed document leads to is an ordered table of cases; the first that fits answers.
A finished run runs again for four reasons only: its own document asks for another execution,
`rerun:` rose above its mark, `state: stopped` was removed, or it came back from the archive
as another execution or without having been run to its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, FieldChange, HeldBy, Permissions, Reason, Step
from fleetform.model.run_state import NO_EVIDENCE, Outdated, RunState
from fleetform.model.verbs import Verb
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import (
    Proposal,
    declared_arguments,
    make_step,
    propose_change_of,
    propose_change_of_row,
    propose_creation,
    reasons_of,
)
from fleetform.plan.phase import Phase, earlier_uid, has_earlier, is_at_work, is_unknown, phase
from fleetform.spec.canonical import digest
from fleetform.spec.desired import Declared
from fleetform.spec.renaming import digests_of

_STILL_ENDING_CURE = "`fleetform apply` waits until it has ended"


def propose_create(declared: Declared) -> Proposal:
    return propose_creation(
        declared, make_step(Verb.RUN_SUBMIT, declared.key, _arguments(declared))
    )


def propose_change(
    declared: Declared, row: LiveResource, permissions: Permissions
) -> Proposal | None:
    """Answer another document for a run that there is, or one that came back."""
    case = _Case.of(declared, row, permissions)
    if row.archived:
        return _returned(case)
    if not case.changed:
        return None  # The digests have another format, and the document is the same.
    if case.was_stopped and not case.stop_wanted:
        return _resumed(case)
    if case.stop_wanted:
        return _stopped(case)
    if case.another_execution or case.rerun_asked:
        return _re_executed(case)
    return _updated(case, reasons_of(case.changed))


def propose_remove(row: LiveResource) -> Proposal:
    """Archive what is over, end what is not; only what is at work can be lost."""
    works = is_at_work(row)
    finished = phase(row) is Phase.FINISHED and not works
    archive = make_step(Verb.RUN_ARCHIVE, row.key, {})
    steps: tuple[Step, ...] = (archive,)
    if not finished:
        stop = _stop_step(row, "removed")
        steps = (stop, make_step(Verb.RUN_ARCHIVE, row.key, {}, (stop.key,)))
    return propose_change_of_row(
        row,
        Action.ARCHIVE if finished else Action.DELETE,
        Reason.REMOVED_FINISHED if finished else Reason.REMOVED,
        *steps,
        destructive=works,
        at_stake=_impact(row) if works else "",
        not_started=not finished and not works,
    )


def propose_renew(
    declared: Declared, row: LiveResource, permissions: Permissions
) -> Proposal | None:
    """
    Run it again because a rerun was requested.

    What waits is not begun twice, and what is to stand still does not run: those are changed as
    ever.
    """
    case = _Case.of(declared, row, permissions)
    reasons = (Reason.REPLACE_ASKED, *reasons_of(case.changed))
    if (
        case.stop_wanted
        or case.phase is Phase.WAITING
        or (row.archived and case.phase is not Phase.FINISHED)
    ):
        differs = row.archived or row.digest != declared.digest
        return propose_change(declared, row, permissions) if differs else None
    if case.phase is Phase.ACTIVE:
        return _restarted(case, reasons)
    return _submitted(case, (Reason.RETURNED, *reasons) if row.archived else reasons)


def propose_forget(row: LiveResource) -> Proposal:
    """
    Take the run out of what is compared, with its tombstone: put back, it is a new one.

    Its history stays. What is at work is not ended by this, so it cannot be forgotten either.
    """
    works = is_at_work(row)
    waits = phase(row) is Phase.WAITING and not works
    forget = make_step(Verb.RUN_FORGET, row.key, {})
    steps: tuple[Step, ...] = (forget,)
    if waits:
        stop = _stop_step(row, "removed")
        steps = (stop, make_step(Verb.RUN_FORGET, row.key, {}, (stop.key,)))
    proposal = propose_change_of_row(row, Action.FORGET, Reason.RELEASED, *steps, not_started=waits)
    if not works:
        return proposal
    state = "an earlier run of it is running" if has_earlier(row) else f"it is {_state(row)}"
    return _held(
        proposal,
        f"{state}, and releasing it would not end it",
        "wait for its end, or remove it from `removed:` to end it",
    )


def propose_pair(declared: Declared, row: LiveResource) -> Proposal:
    """One element of a sweep in the place of another: the old one goes, the new one runs."""
    removal = propose_remove(row)
    submit = make_step(
        Verb.RUN_SUBMIT,
        declared.key,
        {**_arguments(declared), "replaces": row.key.name},
        (removal.change.steps[-1].key,),
    )
    proposal = propose_change_of(
        row,
        declared,
        Action.REPLACE,
        (Reason.ELEMENT_REPLACED,),
        changed_fields("run", row.parsed, declared.document),
        *removal.change.steps,
        submit,
        destructive=removal.change.destructive,
        at_stake=removal.change.at_stake,
        not_started=removal.not_started,
    )
    return replace(proposal, change=replace(proposal.change, replaces=row.key.name))


@dataclass(frozen=True, slots=True)
class _Case:
    """What the table of cases asks about."""

    declared: Declared
    row: LiveResource
    permissions: Permissions
    phase: Phase
    changed: tuple[FieldChange, ...]
    another_execution: bool
    own_changed: bool
    same_form: bool
    """Whether the row's digests have the format of this version: others cannot be compared."""
    rerun_asked: bool
    was_stopped: bool
    stop_wanted: bool

    @classmethod
    def of(cls, declared: Declared, row: LiveResource, permissions: Permissions) -> _Case:
        before: Mapping[str, Any] = row.parsed
        after = declared.document
        same_form = digest(before) == row.digest
        changed = changed_fields("run", before, after)
        mark = max(before.get("rerun", 0), row.run.rerun_mark if row.run else 0)
        return cls(
            declared=declared,
            row=row,
            permissions=permissions,
            phase=phase(row),
            changed=changed,
            # Both: the digest may be of another version, and the fields know no defaults.
            another_execution=declared.execution_digest != row.execution_digest
            and any(one.field_class == "execution" for one in changed),
            # Digests of different formats are not comparable, so an upgrade never triggers a re-run.
            own_changed=declared.own_digest != row.own_digest and same_form,
            same_form=same_form,
            rerun_asked=after.get("rerun", 0) > mark,
            was_stopped=before.get("state", "running") == "stopped",
            stop_wanted=after.get("state", "running") == "stopped",
        )


# -- the cases, gravest last ---------------------------------------------------------------


def _updated(case: _Case, reasons: tuple[Reason, ...], stale: Outdated = Outdated.NO) -> Proposal:
    """Another document for the same execution, or for one that has not begun."""
    step = make_step(Verb.RUN_UPDATE, case.declared.key, _update_arguments(case, stale))
    # Once it has started, the new document would describe what never ran.
    not_started = case.phase is Phase.WAITING and case.another_execution
    return _proposal(case, Action.UPDATE, reasons, step, forces=False, not_started=not_started)


def _stopped(case: _Case) -> Proposal:
    """`state: stopped`: what was asked for, and it ends running work all the same."""
    reasons = _deferred(case)
    if not case.was_stopped and case.phase is not Phase.FINISHED:
        reasons = (Reason.STATE_WANTED, *reasons)
    # What has been asked to stop is not asked twice, and what is over runs no more either way.
    if case.was_stopped and case.phase is Phase.ACTIVE and case.another_execution:
        # What is ending still runs its own document; another one would describe what never ran.
        return _held_while_ending(_updated(case, reasons))
    if case.was_stopped or not is_at_work(case.row):
        return _updated(case, reasons, _outdated(case))
    update = make_step(Verb.RUN_UPDATE, case.declared.key, _update_arguments(case, _outdated(case)))
    stop = make_step(Verb.RUN_STOP, case.row.key, {"cause": "state"}, (update.key,))
    return _proposal(
        case,
        Action.UPDATE,
        reasons,
        update,
        stop,
        forces=False,
        destructive=True,
        at_stake=_impact(case.row),
    )


def _deferred(case: _Case) -> tuple[Reason, ...]:
    """Return the reasons for a change of a run that is to stand still: another execution has to wait."""
    reasons = reasons_of(case.changed)
    if not case.another_execution:
        return reasons
    others = (one for one in reasons if one is not Reason.EXECUTION_CHANGED)
    inherited = case.phase is Phase.FINISHED and not case.own_changed
    return (Reason.INHERITED_CHANGED if inherited else Reason.DEFERRED, *others)


def _outdated(case: _Case) -> Outdated:
    """Tell how the result will differ from the new document: what has begun executes an earlier one."""
    if case.phase is Phase.WAITING or not case.another_execution:
        return Outdated.NO
    return Outdated.DOCUMENT if case.own_changed else Outdated.INHERITED


def _resumed(case: _Case) -> Proposal:
    """`state: stopped` was taken back."""
    if is_at_work(case.row):
        return _held_while_ending(_submitted(case, (Reason.RESUMED,)))
    if case.phase is Phase.WAITING:
        # A controller is about to end it, and may have by the time of the step: another run follows it.
        reasons = (Reason.RESUMED, *reasons_of(case.changed))
        return _ended_and_submitted(case, _submitted(case, reasons, after_uid=case.row.uid))
    if case.row.run is not None and case.row.run.state is RunState.STOPPED:
        return _submitted(case, (Reason.RESUMED, *reasons_of(case.changed)))
    # It had come to its own end before it was stopped: there is nothing to resume.
    if case.rerun_asked or case.another_execution:
        return _re_executed(case)
    if case.row.run is not None and case.row.run.stale is Outdated.DOCUMENT:
        return _submitted(case, (Reason.EXECUTION_CHANGED, *reasons_of(case.changed)))
    return _updated(case, reasons_of(case.changed))


def _re_executed(case: _Case) -> Proposal:
    """Another execution, or the same once more, by where the run stands."""
    reasons = reasons_of(case.changed)
    if case.rerun_asked:
        reasons = (Reason.RERUN_ASKED, *reasons)
    if case.phase is Phase.WAITING:
        return _successor_changed(case, reasons)
    if case.phase is Phase.ACTIVE:
        return _restarted(case, reasons)
    if case.rerun_asked or case.own_changed:
        return _submitted(case, reasons)
    # A base or a profile changed: the result is marked, and who wants it redone says `rerun`.
    inherited = tuple(one for one in reasons if one is not Reason.EXECUTION_CHANGED)
    return _updated(case, (Reason.INHERITED_CHANGED, *inherited), Outdated.INHERITED)


def _successor_changed(case: _Case, reasons: tuple[Reason, ...]) -> Proposal:
    """Something else for what waits, perhaps for a run of its name that is at work."""
    earlier = None if case.row.run is None else case.row.run.earlier
    if earlier is None:
        return _updated(case, reasons)
    executed = digests_of("run", json.loads(earlier.document))[1]
    is_same = executed == case.declared.execution_digest
    if is_same and not case.rerun_asked and not earlier.ending:
        return _withdrawn(case, earlier.uid)
    if _may_restart(case):
        return _ended_and_submitted(case, _submitted(case, reasons))
    return _updated(case, reasons)


def _withdrawn(case: _Case, earlier: str) -> Proposal:
    """What is at work is what is declared once more: its successor would do the same again."""
    arguments = {**_update_arguments(case), "earlier": earlier}
    step = make_step(Verb.RUN_UPDATE, case.declared.key, arguments)
    return _proposal(case, Action.UPDATE, (Reason.WITHDRAWN,), step, forces=False, not_started=True)


def _may_restart(case: _Case) -> bool:
    """Tell whether the document or a permission allows to end the running work for this."""
    asks = case.declared.document.get("on_change", "hold") == "restart"
    # A document that brings a permission along does not use it: the one applied last counts.
    return case.permissions.allow_restart or (
        asks and case.row.parsed.get("on_change") == "restart"
    )


def _restarted(case: _Case, reasons: tuple[Reason, ...]) -> Proposal:
    """A running run whose execution changed: only what its document or a permission allows."""
    on_change = case.declared.document.get("on_change", "hold")
    proposal = _submitted(case, reasons, after_uid=case.row.uid)
    if case.row.run is not None and case.row.run.cause == NO_EVIDENCE:
        if case.rerun_asked:
            # Only a person could say so, and has; nothing of it is there that could still run.
            return _submitted(case, reasons)
        return _held(
            proposal,
            "no host knows whether it ran before the ledger was rebuilt",
            f"fleetform rerun {case.row.key.name}",
        )
    if is_unknown(case.row):
        return _held(
            proposal,
            "its host does not answer, so whether it still runs is unknown",
            "plan again once the host answers, or declare the host lost",
        )
    if has_earlier(case.row):
        # As a rebuilt ledger may find it: another run could wait for one of them only.
        return _held(
            proposal,
            "it and an earlier run with its name are both running",
            "plan again once one of them has ended",
        )
    if on_change == "after-finish" and not case.permissions.allow_restart:
        return proposal
    if not _may_restart(case):
        return _held(
            proposal,
            f"it is {_state(case.row)}, and a restart would lose {_impact(case.row)}",
            "--allow-restart, or `on_change: after-finish` in its document, or apply"
            " `on_change: restart` first, without this change",
        )
    return _ended_and_submitted(case, proposal)


def _ended_and_submitted(case: _Case, proposal: Proposal) -> Proposal:
    """End what is at work under the name first, and what waits for it."""
    stop = _stop_step(case.row, "replaced")
    (submit,) = proposal.change.steps
    works = is_at_work(case.row)
    return _proposal(
        case,
        Action.REPLACE,
        proposal.change.reasons,
        stop,
        make_step(Verb.RUN_SUBMIT, submit.resource, submit.arguments, (stop.key,)),
        destructive=works,
        at_stake=_impact(case.row) if works else "",
        not_started=not works,
    )


def _returned(case: _Case) -> Proposal:
    """A tombstone whose document is in the tree again."""
    if case.phase is not Phase.FINISHED or has_earlier(case.row):
        return _held_while_ending(_submitted(case, (Reason.RETURNED,)))
    if case.rerun_asked:
        return _submitted(case, (Reason.RETURNED, Reason.RERUN_ASKED))
    if case.another_execution:
        return _submitted(case, (Reason.RETURNED, Reason.EXECUTION_CHANGED))
    # Removed while it ran: it has no result to find again, and being in the tree means to be
    # run to the end.
    cut_short = case.row.run is not None and case.row.run.state is RunState.STOPPED
    if cut_short and not case.stop_wanted:
        return _submitted(case, (Reason.RETURNED, Reason.RESUMED))
    step = make_step(Verb.RUN_RESTORE, case.declared.key, _arguments(case.declared))
    return _proposal(case, Action.CREATE, (Reason.RETURNED,), step, forces=False)


# -- what the cases are made of --------------------------------------------------------------


def _submitted(case: _Case, reasons: tuple[Reason, ...], *, after_uid: str = "") -> Proposal:
    """
    A new run under the same name.

    `after_uid` names the earlier one while that is not over: the new one must not start
    before it is, or two executions would write to the same places.
    """
    if not after_uid:
        after_uid = earlier_uid(case.row)
    step = make_step(
        Verb.RUN_SUBMIT, case.declared.key, {**_arguments(case.declared), "after_uid": after_uid}
    )
    return _proposal(case, Action.REPLACE, reasons, step)


def _held(proposal: Proposal, detail: str, cure: str) -> Proposal:
    return Proposal(proposal.change, HeldBy.RUNNING_WORK, detail, cure)


def _held_while_ending(proposal: Proposal) -> Proposal:
    return Proposal(proposal.change, HeldBy.ENDING, "it is still being stopped", _STILL_ENDING_CURE)


def _proposal(
    case: _Case,
    action: Action,
    reasons: tuple[Reason, ...],
    *steps: Step,
    forces: bool = True,
    **more: Any,
) -> Proposal:
    """Propose a change of the run; without `forces` it replaces nothing, so no field forces it."""
    fields = case.changed
    if not forces:
        fields = tuple(replace(one, forces=False) if one.forces else one for one in fields)
    return propose_change_of(case.row, case.declared, action, reasons, fields, *steps, **more)


def _arguments(declared: Declared) -> dict[str, Any]:
    return {
        **declared_arguments(declared),
        "parent": declared.parent,
        "element": declared.element,
        "replaces": "",
    }


def _update_arguments(case: _Case, stale: Outdated = Outdated.NO) -> dict[str, Any]:
    """`stale` once is stale until it runs again: the result is of an earlier document."""
    stale = max(stale, Outdated.NO if case.row.run is None else case.row.run.stale)
    arguments = {**_arguments(case.declared), "stale": stale is not Outdated.NO}
    if stale is Outdated.DOCUMENT:
        arguments["edited"] = True
    if not case.same_form and not case.another_execution:
        # What is executed is the same: it is not to look like another because of an upgrade.
        arguments["execution_digest"] = case.row.execution_digest
    return arguments


def _stop_step(row: LiveResource, cause: str) -> Step:
    """`waiting` says that it was agreed to end what has not begun, and nothing else."""
    arguments: dict[str, Any] = {"cause": cause}
    if earlier := earlier_uid(row):
        # It ends with it, and whoever applies waits for both.
        arguments["earlier"] = earlier
    elif phase(row) is Phase.WAITING:
        arguments["waiting"] = True
    return make_step(Verb.RUN_STOP, row.key, arguments)


def _state(row: LiveResource) -> str:
    return row.run.state.value if row.run is not None else "waiting"


def _impact(row: LiveResource) -> str:
    """What would be lost, without its age: time is no part of a plan's digest."""
    if row.run is None:
        return "nothing"
    if has_earlier(row):
        return "the work of the earlier run, which has not ended"
    attempt = f"attempt {max(row.run.attempt, 1)} ({row.run.state.value})"
    if row.run.gpus:
        gpus = "1 GPU" if row.run.gpus == 1 else f"{row.run.gpus} GPUs"
        return f"the work of {attempt} on {gpus}"
    return f"the work of {attempt}"


__all__ = [
    "propose_change",
    "propose_create",
    "propose_forget",
    "propose_pair",
    "propose_remove",
    "propose_renew",
]

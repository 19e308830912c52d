"""
The sentence for each reason why a change is in a plan, and for each cause that blocks one.

A plan gives codes to programs and sentences to people. Tests prove that both tables are complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleetform.model.drift import OTHER_DATA
from fleetform.model.plan import Action, Change, HeldBy, Reason
from fleetform.model.rollout import divides_otherwise
from fleetform.spec import fields
from fleetform.spec.fields import OnChange
from fleetform.spec.names import split_element

REASONS: Mapping[Reason, str] = {
    Reason.ABSENT: "",  # The sign says it.
    Reason.RETURNED: "declared again",
    Reason.EXECUTION_CHANGED: "its execution changed",
    Reason.CONTROL_CHANGED: "updated in place",
    Reason.COSMETIC_CHANGED: "only its description changed",
    Reason.INHERITED_CHANGED: "inherited values changed: its result is kept and marked outdated",
    Reason.ELEMENT_REPLACED: "replaces another element of the sweep",
    Reason.RERUN_ASKED: "`rerun` requests another execution",
    Reason.REMOVED: "removed from the configuration",
    Reason.REMOVED_FINISHED: "removed from the configuration; its result is kept",
    Reason.DESTROY_ASKED: "`destroy` removes every resource",
    Reason.RESUMED: "started again: it was stopped before its end",
    Reason.STATE_WANTED: "`state: stopped` ends it",
    Reason.MOVED: "renamed by `moved:`",
    Reason.FOUND: "adopted as it is, by `import:`",
    Reason.RELEASED: "released by `removed:`: it stays as it is, and fleetform stops managing it",
    Reason.REPLACE_ASKED: "`--replace` requests a new one",
    Reason.DRIFTED: "its actual state has drifted",
    Reason.DATA_LOST: "its data is lost: it is created again, empty",
    Reason.WITHDRAWN: "the running version is declared again: the waiting re-run is withdrawn",
    Reason.DEFERRED: "its execution changed: takes effect when it runs again",
    Reason.UNFINISHED: "an earlier apply started this change and did not finish it",
    Reason.HOSTS_LACK_IT: "some of its hosts do not have its directory yet",
}
"""What holds of a reason for every change; `reason_sentence` is more exact where it can be."""

HELD_BY: Mapping[HeldBy, str] = {
    HeldBy.RUNNING_WORK: "running work",
    HeldBy.ENDING: "still ending",
    HeldBy.DESTRUCTIVE: "destructive change not allowed",
    HeldBy.BUDGET: "deletion budget",
    HeldBy.PROTECTION: "protection",
    HeldBy.BROKEN_DOCUMENT: "invalid document",
    HeldBy.RECOVERING: "ledger is recovering",
    HeldBy.DEPENDENCY: "dependency",
    HeldBy.NOT_SUPPORTED: "not supported yet",
    HeldBy.WINDOW: "freeze window",
    HeldBy.OVERRIDE: "override",
    HeldBy.OWNER: "owned by another environment",
    HeldBy.DRIFT: "drift",
    HeldBy.ACCOUNT: "account on hosts",
}


def blocked_text(cause: str, detail: str) -> str:
    """Write `protection: it is protected`; a detail that says itself what is needed, or not supported, stands alone."""
    is_said = cause == HELD_BY[HeldBy.NOT_SUPPORTED] and cause in detail
    return detail if is_said or cause == HELD_BY[HeldBy.DEPENDENCY] else f"{cause}: {detail}"


def reason_sentence(change: Change, *others: Change) -> str:
    """
    Say why a change is in the plan; empty where its sign says all, or the cause is unknown.

    Args:
        change: The change, or the first of a group with equal action and reasons.
        others: The rest of the group, whose changed fields are named as well.
    """
    reasons = change.reasons
    left_out = {Reason.COSMETIC_CHANGED} if len(reasons) > 1 else set()  # "Only" would be wrong.
    executed = {Reason.EXECUTION_CHANGED, Reason.DEFERRED}
    if executed & set(reasons) or change.action is Action.REPLACE:
        left_out.add(Reason.CONTROL_CHANGED)  # What is replaced is not updated in place.
    sentences = [_sentence(one, change, others) for one in reasons if one not in left_out]
    sentence = "; ".join(one for one in sentences if one)
    if Reason.RETURNED in reasons and change.key.kind == "run" and change.action is Action.CREATE:
        return f"{sentence}: its result is restored and nothing runs"
    if Reason.DESTROY_ASKED in reasons and change.action is Action.ARCHIVE:
        return f"{sentence}; its result is kept"
    return sentence


def _sentence(reason: Reason, change: Change, others: Sequence[Change]) -> str:
    if reason in {Reason.EXECUTION_CHANGED, Reason.DEFERRED}:
        return _execution_sentence(change, others)
    if reason is Reason.CONTROL_CHANGED and change.key.kind == "fleet":
        return _fleet_sentence(change)
    if reason is Reason.RETURNED and change.key.kind != "run":
        return "restored with its data"
    if reason is Reason.REPLACE_ASKED:
        hosts = [name for step in change.steps for name in step.arguments.get("exchange", ())]
        return f"`--replace` replaces {', '.join(hosts)}" if hosts else REASONS[reason]
    if reason is Reason.DATA_LOST and any(one.before == OTHER_DATA for one in change.fields):
        return "its data is lost: it continues with the other data that is in its place"
    if reason is Reason.MOVED and change.moved_from:
        before, element = split_element(change.moved_from)
        # Elements that keep their places in a sweep are grouped.
        same = element and element == change.element and not change.replaces
        return f"renamed from {before if same else change.moved_from}"
    return REASONS[reason]


def _fleet_sentence(change: Change) -> str:
    """Say what becomes of the hosts of a fleet that stays, and name the fields that only later hosts have."""
    if _replaces_hosts(change):
        return "its hosts are replaced"
    in_cloud = any("shared" in step.arguments for step in change.steps)
    later = [
        field.path
        for field in change.fields
        if in_cloud and fields.row("fleet", field.path).on_change is OnChange.NEW_HOSTS
    ]
    if not later:
        return REASONS[Reason.CONTROL_CHANGED]
    sentence = f"applies to hosts that are created later: {', '.join(f'`{one}`' for one in later)}"
    is_all = len(later) == len(change.fields)
    return sentence if is_all else f"{REASONS[Reason.CONTROL_CHANGED]}; {sentence}"


def _replaces_hosts(change: Change) -> bool:
    """Tell whether a fleet stays and hosts of it are replaced."""
    unfit = (step.arguments.get("unfit") for step in change.steps)
    return any(unfit) or any(map(divides_otherwise, change.fields))


def _execution_sentence(change: Change, others: Sequence[Change]) -> str:
    """Name the changed fields, and what their change means for this kind and action."""
    names = {
        re.split(r"[.\[]", field.path, maxsplit=1)[0]
        for one in (change, *others)
        for field in one.fields
        if field.field_class == "execution"
    }
    fields = f"{', '.join(f'`{name}`' for name in sorted(names)) or 'its execution'} changed"
    if change.key.kind != "run":
        return (
            f"cannot be updated in place: {fields}" if change.action is Action.REPLACE else fields
        )
    if change.action is Action.REPLACE:
        return f"must re-run: {fields}"
    if Reason.DEFERRED in change.reasons:
        return f"{fields}: takes effect when it runs again"
    return f"updated before it starts: {fields}" if change.action is Action.UPDATE else fields

"""The last line of a plan, and the counts behind it."""

from __future__ import annotations

from collections import Counter

from fleetform.model.figures import counted
from fleetform.model.plan import Action, HeldBy, Plan
from fleetform.views.plan_drift import count_text
from fleetform.views.plan_earlier import earlier_runs

__all__ = ["counts", "executions", "summary"]

_VERBS = {
    Action.CREATE: "to create",
    Action.ADOPT: "to adopt",
    Action.UPDATE: "to update",
    Action.REPLACE: "to replace",
    Action.DELETE: "to delete",
    Action.FORGET: "to release",
    Action.ARCHIVE: "to archive",
}


def counts(plan: Plan) -> dict[str, int]:
    """How many changes of each action, and of everything else that a plan lists."""
    by_action = Counter(change.action for change in plan.changes)
    return {
        **{action.value: by_action[action] for action in _VERBS},
        "destructive": sum(change.destructive for change in plan.changes),
        "held": len(plan.held),
        "deferred": len(plan.deferred),
        "settled": len(plan.settled),
        "progressing": len(plan.progressing),
    }


def summary(plan: Plan) -> str:
    """`Plan: 3 to create; 1 blocked; 2 not supported yet.`, or that there is nothing to do."""
    by_action = Counter(change.action for change in plan.changes)
    parts = [f"{by_action[action]} {verb}" for action, verb in _VERBS.items() if by_action[action]]
    beyond = sum(one.by is HeldBy.NOT_CARRIED_OUT for one in plan.held)
    rest = "".join(
        f"; {count} {word}"
        for count, word in (
            (len(plan.held) - beyond, "blocked"),
            (beyond, "not supported yet"),
            (len(plan.deferred), "deferred"),
        )
        if count
    )
    rest += "".join(f"; {one.summary}" for one in earlier_runs(plan))
    unknown = plan.annex.get("unknown", ())
    if unknown:
        rest += f"; {counted(len(unknown), 'run')} unknown"
    if parts:
        return f"Plan: {', '.join(parts)}{rest}."
    if plan.held:
        return f"No changes can be made now{rest}."
    if plan.recovering:
        return f"No changes can be made now, because the ledger is recovering{rest}."
    if plan.settled or plan.deferred or (unknown and not plan.destroys):
        return f"No changes{rest}."
    if plan.destroys and plan.progressing:
        return "No changes: the remaining resources are being removed."
    if plan.destroys:
        return "Nothing is left to remove."
    if drift := count_text(plan):
        return f"No changes to make; drift was seen: {drift}."
    return "No changes. Your environment is as declared."


def executions(plan: Plan) -> str:
    """
    Say how many runs are executed because of replacements; empty where none is.

    An element that takes another's place has not been executed itself, so it is counted apart.
    """
    replaced = [
        change
        for change in plan.changes
        if change.key.kind == "run" and change.action is Action.REPLACE
    ]
    other = sum(bool(change.replaces) for change in replaced)
    again = len(replaced) - other
    parts = [f"{counted(again, 'run')} will re-run."] if again else []
    if other:
        place = "replaces another" if other == 1 else "replace others"
        parts.append(f"{counted(other, 'new run')} {place}.")
    return " ".join(parts)

"""
What a plan changes, in one line: `+3 runs, ~1 fleet (lab: nodes 2 → 4), -1 volume (data)`.

`history` shows the line, and the ledger keeps it with the plan: to read a hundred plans for
a list of them would take seconds where they are large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fleetform.model.figures import counted, first_of
from fleetform.model.plan import Action, Change, FieldChange, HeldBy, Plan
from fleetform.views.field_text import change_texts
from fleetform.views.lines import printable
from fleetform.views.plan.groups import leaf_changes
from fleetform.views.plan.notes import count_text, earlier_runs

_NAMES_MAX = 3

_FIELDS_MAX = 3
"""Paths that are named; the line stands in a table."""

_SIGNS = {
    Action.CREATE: "+",
    Action.ADOPT: "adopt ",
    Action.UPDATE: "~",
    Action.REPLACE: "-/+",
    Action.DELETE: "-",
    Action.FORGET: "release ",
    Action.ARCHIVE: "archive ",
}
"""Signs as in a plan, words where a sign of a plan is not common; in the order of the line."""

_CHANGED = (Action.UPDATE, Action.REPLACE)


def change_summary(plan: Plan) -> str:
    """Write the line: counts by action and kind, names and fields where they have room."""
    blocked = f"; {len(plan.held)} blocked" if plan.held else ""
    if not plan.changes:
        return f"no changes{blocked}"
    if len(plan.changes) == 1 and plan.changes[0].action in _CHANGED:
        return f"{_detail(plan.changes)}{blocked}"
    groups: dict[tuple[Action, str], list[Change]] = {}
    for change in plan.changes:
        groups.setdefault((change.action, change.key.kind), []).append(change)
    order = list(_SIGNS)
    parts = []
    for action, kind in sorted(groups, key=lambda group: (order.index(group[0]), group[1])):
        changes = groups[action, kind]
        detail = _detail(changes)
        count = counted(len(changes), kind, "policies" if kind == "policy" else "")
        parts.append(f"{_SIGNS[action]}{count}{f' ({detail})' if detail else ''}")
    return f"{', '.join(parts)}{blocked}"


def _detail(changes: Sequence[Change]) -> str:
    """Name a few resources, and the fields that changed where it is one resource."""
    names = list(dict.fromkeys(printable(one.parent or one.key.name) for one in changes))
    if len(names) > 1:
        return ", ".join(names) if len(names) <= _NAMES_MAX else ""
    name, first = names[0], changes[0]
    if len(changes) > 1 or first.action not in _CHANGED or not first.fields:
        return name
    leaves = leaf_changes(first.key.kind, first.fields)
    if len(leaves) == 1:
        return f"{name}: {_field(first.key.kind, leaves[0])}"
    return f"{name}: {first_of([one.path for one in leaves], _FIELDS_MAX)}"


def _field(kind: str, one: FieldChange) -> str:
    """Write a number before and after; a text may be long, or not for everyone who sees the list."""
    is_number = isinstance(one.before, int) and isinstance(one.after, int)
    if one.sensitive or not is_number:
        return one.path
    before, after = change_texts(kind, one.path, one.before, one.after)
    return f"{one.path} {before} → {after}"


# The last line of a plan, and the counts behind it.


def counts(plan: Plan) -> dict[str, int]:
    """How many changes of each action, and of everything else that a plan lists."""
    by_action = Counter(change.action for change in plan.changes)
    return {
        **{action.value: by_action[action] for action in _SIGNS},
        "destructive": sum(change.destructive for change in plan.changes),
        "held": len(plan.held),
        "deferred": len(plan.deferred),
        "settled": len(plan.settled),
        "progressing": len(plan.progressing),
    }


_LATE = {
    "hosts_joining": "not set up",
    "hosts_waiting": "not created",
    "hosts_silent": "unreachable",
}
"""By the name in the annex: what is wrong with the hosts."""


def summary(plan: Plan) -> str:
    """`Plan: 3 to create; 1 blocked; 2 not supported yet.`, or that there is nothing to do."""
    by_action = Counter(change.action for change in plan.changes)
    words = {action: action.value for action in _SIGNS} | {Action.FORGET: "release"}
    parts = [f"{by_action[one]} to {word}" for one, word in words.items() if by_action[one]]
    beyond = sum(one.by is HeldBy.NOT_SUPPORTED for one in plan.held)
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
    if plan.annex.get("unfinished"):
        return "No changes can be made now: an earlier apply is not finished."
    if plan.destroys:
        return "Nothing is left to remove."
    if drift := count_text(plan):
        return f"No changes to make; drift was seen: {drift}."
    if open_ends := _open_ends(plan):
        return f"No changes to make; {'; '.join(open_ends)}."
    return "No changes. Your environment is as declared."


def _open_ends(plan: Plan) -> list[str]:
    """Say what the environment lacks although nothing is to be changed."""
    found = []
    for kind, lacks in _LATE.items():
        if hosts := sum(map(len, plan.annex.get(kind, {}).values())):
            found.append(f"{counted(hosts, 'host')} {lacks}")
    if rollouts := plan.annex.get("rollouts"):
        found.append(f"{counted(len(rollouts), 'rollout')} under way")
    return found


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

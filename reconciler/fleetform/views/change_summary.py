"""
What a plan changes, in one line: `+3 runs, ~1 fleet (lab: nodes 2 → 4), -1 volume (data)`.

`history` shows the line, and the ledger keeps it beside the plan: to read a hundred plans for
a list of them would take seconds where they are large.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetform.model.figures import counted
from fleetform.model.plan import Action, Change, FieldChange, Plan
from fleetform.views.field_text import change_texts
from fleetform.views.lines import printable
from fleetform.views.plan_fields import leaf_changes

__all__ = ["change_summary"]

_NAMES_MAX = 3

_FIELDS_MAX = 3
"""Paths that are named; the line stands in a table."""

_VERBS = {
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
    order = list(_VERBS)
    parts = []
    for action, kind in sorted(groups, key=lambda group: (order.index(group[0]), group[1])):
        changes = groups[action, kind]
        detail = _detail(changes)
        count = counted(len(changes), kind, "policies" if kind == "policy" else "")
        parts.append(f"{_VERBS[action]}{count}{f' ({detail})' if detail else ''}")
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
    paths = ", ".join(one.path for one in leaves[:_FIELDS_MAX])
    more = len(leaves) - _FIELDS_MAX
    return f"{name}: {paths}{f' and {more} more' if more > 0 else ''}"


def _field(kind: str, one: FieldChange) -> str:
    """Write a number before and after; a text may be long, or not for everyone who sees the list."""
    is_number = isinstance(one.before, int) and isinstance(one.after, int)
    if one.sensitive or not is_number:
        return one.path
    before, after = change_texts(kind, one.path, one.before, one.after)
    return f"{one.path} {before} → {after}"

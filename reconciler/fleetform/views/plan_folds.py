"""
The fields of many elements, as few rows that give the value of each.

What all elements have in common is one row. What differs is shown as the text that it was made
from, with `${{ matrix.lr }}` in it, where there is one (`templates` proves it), and else value by
value with the elements that have it. Nothing is left out without being counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fleetform.model import figures
from fleetform.model.plan import Action, Change, FieldChange
from fleetform.spec.interpolate import Scope
from fleetform.spec.names import split_parameters
from fleetform.views.element_names import element_of, name_elements
from fleetform.views.plan_change_documents import document_after, document_before
from fleetform.views.plan_fields import leaf_changes
from fleetform.views.plan_groups import ALL_OF_THEM, GROUP_MIN, Group
from fleetform.views.templates import MARK, Sample, families, reproduces

__all__ = ["SAME_TEXT", "VALUES_MAX", "Fold", "fold", "more_text"]

SAME_TEXT = "same text, other parameters"
"""Said of a template that gives each element's value before and after."""

VALUES_MAX = 10
"""Distinct values of one field that a page has room for; JSON has the whole of each element."""


class Fold(NamedTuple):
    """
    One field of some elements of a group, before and after.

    Attributes:
        field: Its values may be templates, spelled as in a document.
        elements: Those it is about, `[1-3,5]`; empty for all of the group.
        more: Distinct values of this field that follow and are not shown; then there is no row.
    """

    field: FieldChange
    elements: str = ""
    more: int = 0


def fold(group: Group) -> tuple[Fold, ...]:
    """Return the rows of a group in the order of its fields."""
    if not group.is_many:
        return tuple(map(Fold, leaf_changes(group.first.key.kind, group.first.fields)))
    by_path: dict[str, list[_Member]] = {}
    pairs = _parameters_named(group.first) if group.first.replaces else frozenset()
    for change in group.changes:
        scopes: tuple[Scope, Scope] | None = None
        named = _parameters_named(change) if change.action is Action.CREATE else frozenset()
        for field in leaf_changes(change.key.kind, change.fields):
            if field.path in named:
                continue
            scopes = scopes or _scopes(change)
            by_path.setdefault(field.path, []).append(_Member(change, field, *scopes))
    found: list[Fold] = []
    for members in by_path.values():
        # Of elements that take the place of others, both names are shown.
        if members[0].field.path in pairs and len(_by_sides(members)) > 1:
            continue
        found.extend(_folded(members, len(group.changes)))
    return tuple(found)


def more_text(one: Fold) -> str:
    """Count what is not shown, and name the command that shows it."""
    return f"and {figures.counted(one.more, 'more value')} of {one.field.path}: {ALL_OF_THEM}"


class _Member(NamedTuple):
    change: Change
    field: FieldChange
    before: Scope
    after: Scope


def _parameters_named(change: Change) -> frozenset[str]:
    """Fields of which an element's name says everything."""
    named = split_parameters(element_of(change))
    return frozenset({"index", *(f"matrix.{name}" for name in named)})


def _scopes(change: Change) -> tuple[Scope, Scope]:
    after = document_after(change)
    before = document_before(change)
    old_name = change.replaces or change.moved_from or change.key.name
    return (
        _scope(old_name, before or after or {}),
        _scope(change.key.name, after or before or {}),
    )


def _scope(name: str, document: Mapping[str, Any]) -> Scope:
    """What an expression of the element could name, as its document has it."""
    run = {"name": name}
    if "index" in document:
        run["index"] = document["index"]
    # A variable that is taken over when the run is submitted stands for itself until then.
    late = {
        variable: f"{MARK} env.{variable} }}}}"
        for variable, text in (document.get("env") or {}).items()
        if text is None
    }
    return {"run": run, "matrix": document.get("matrix") or {}, "env": late}


def _folded(members: Sequence[_Member], count: int) -> list[Fold]:
    """The rows of one field: for all elements, for families of them, then one by one."""
    if len(members) == count and len(_by_sides(members)) == 1:
        return [Fold(_spelled(members[0]))]
    rows: list[Fold] = []
    rest = list(members)
    if _may_have_template(members[0].field.path):
        for together in _by_shape(members):
            samples = [
                Sample(one.field.before, one.field.after, one.before, one.after) for one in together
            ]
            for family in families(samples, members_min=GROUP_MIN):
                chosen = [together[place] for place in family.members]
                field = replace(chosen[0].field, before=family.before, after=family.after)
                rows.append(Fold(field, _whose(chosen, count)))
                taken = {id(one) for one in chosen}
                rest = [one for one in rest if id(one) not in taken]
    apart = _by_sides(rest)
    rows.extend(
        Fold(_spelled(together[0]), _whose(together, count)) for together in apart[:VALUES_MAX]
    )
    if len(apart) > VALUES_MAX:
        rows.append(Fold(apart[VALUES_MAX][0].field, more=len(apart) - VALUES_MAX))
    return rows


def _may_have_template(path: str) -> bool:
    """A parameter is its own template, which says nothing."""
    return path != "index" and path.partition(".")[0] != "matrix"


def _by_sides(members: Iterable[_Member]) -> list[list[_Member]]:
    found: dict[tuple[object, ...], list[_Member]] = {}
    for one in members:
        field = one.field
        key = (field.before_set, field.after_set, _key(field.before), _key(field.after))
        found.setdefault(key, []).append(one)
    return list(found.values())


def _key(value: Any) -> object:
    """Equal where JSON is: to Python 1 is True."""
    return value if isinstance(value, str) else (json.dumps(value, sort_keys=True),)


def _by_shape(members: Iterable[_Member]) -> list[list[_Member]]:
    """Apart by which sides are set, for a template says nothing of that."""
    found: dict[tuple[bool, bool, bool], list[_Member]] = {}
    for one in members:
        shape = (one.field.before_set, one.field.after_set, one.field.forces)
        found.setdefault(shape, []).append(one)
    return list(found.values())


def _spelled(member: _Member) -> FieldChange:
    """
    The values as a document has to spell them, for that is how templates are written.

    In one block `${{ matrix.lr }}` must not be a reference in one row and plain text in the next.
    """
    field = member.field
    before = _spelled_value(field.before, member.before)
    after = _spelled_value(field.after, member.after)
    return replace(field, before=before, after=after)


def _spelled_value(value: Any, scope: Scope) -> Any:
    if isinstance(value, str):
        if MARK not in value or reproduces(value, value, scope):
            return value
        return type(value)(value.replace(MARK, f"${MARK}"))
    if isinstance(value, Mapping):
        return {name: _spelled_value(one, scope) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled_value(one, scope) for one in value]
    return value


def _whose(members: Sequence[_Member], count: int) -> str:
    if len(members) == count:
        return ""
    named = name_elements(one.change for one in members)
    return named.text if named.is_complete else f"{named.text} ({len(members)} elements)"

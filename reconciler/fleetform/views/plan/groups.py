"""
Which changes of a plan are read as one.

A thousand elements of an array that all come into being are one fact. Elements of one sweep
with the same action, reasons and stakes make a group; what they have in common is shown once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fleetform.model import figures
from fleetform.model.plan import Action, Change, FieldChange, Held, HeldBy
from fleetform.spec.interpolate import Scope
from fleetform.spec.names import natural_order, split_parameters
from fleetform.views.element_names import element_of, name_elements
from fleetform.views.field_text import change_texts, leaf_values, value_text
from fleetform.views.lines import Line, Span, line, printable
from fleetform.views.templates import MARK, Sample, families, reproduces
from fleetform.views.text_diff import TONES, DiffLine, diff_lines

# A change's fields as rows of text: the same for the terminal and for a pull request.

FORCES = "forces replacement"
"""The remark at a field whose change makes a run execute again."""


class FieldRow(NamedTuple):
    """
    One row; None for a side on which the field is not set.

    `lines` are the difference of texts of several lines; then `before` and `after` are the same
    on one line each, for those who have no room for more.
    """

    path: str
    before: str | None
    after: str | None
    forces: bool = False
    lines: tuple[DiffLine, ...] = ()

    def sides(self) -> dict[str, str | bool | None]:
        """Return JSON values without the lines, which say the same once more."""
        return {
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "forces": self.forces,
        }


def field_rows(kind: str, fields: Iterable[FieldChange]) -> tuple[FieldRow, ...]:
    """
    Return rows in the order of the fields.

    A value that is set or taken away as a whole has a row for each field in it.
    """
    return tuple([field_row(kind, one) for one in leaf_changes(kind, fields)])


def leaf_changes(kind: str, fields: Iterable[FieldChange]) -> list[FieldChange]:
    """Changes of one row each, in the same order."""
    found: list[FieldChange] = []
    for one in fields:
        path = printable(one.path)
        if one.before_set and one.after_set:
            found.append(one if path == one.path else replace(one, path=path))
        elif one.after_set:
            for name, value in leaf_values(kind, path, one.after):
                found.append(_leaf(one, name, None, value))
        else:
            for name, value in leaf_values(kind, path, one.before):
                found.append(_leaf(one, name, value, None))
    return found


def _leaf(one: FieldChange, path: str, before: Any, after: Any) -> FieldChange:
    return replace(one, path=path, before=before, after=after)


def field_row(kind: str, one: FieldChange) -> FieldRow:
    """Write one leaf."""
    lines = _lines(one)
    if one.before_set and one.after_set:
        before, after = change_texts(kind, one.path, one.before, one.after)
        return FieldRow(one.path, before, after, one.forces, lines)
    if one.after_set:
        return FieldRow(one.path, None, value_text(kind, one.path, one.after), one.forces, lines)
    return FieldRow(one.path, value_text(kind, one.path, one.before), None, one.forces, lines)


def _lines(one: FieldChange) -> tuple[DiffLine, ...]:
    sides = [_text_of(one.before), _text_of(one.after)]
    if not any(side and "\n" in side for side in sides):
        return ()
    # Text in the place of a number, or the other way round: each is shown whole.
    if (one.before_set and sides[0] is None) or (one.after_set and sides[1] is None):
        return ()
    found = diff_lines(*sides)
    # Of what is new, or goes, every line is one: where they stand says nothing.
    is_whole = None in sides
    return tuple(line for line in found if not (is_whole and line.sign == "@"))


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# A field's path taken apart, and values put where paths say: `env.LR`, `files["a.py"].sha256`.

_PART = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<place>\"(?:[^\"\\]|\\.)*\"|\d+)\]")


def path_parts(path: str) -> list[str | int]:
    """The keys and places on the way to a field; places are whole numbers."""
    return [
        found["name"] if found["name"] is not None else json.loads(found["place"])
        for found in _PART.finditer(path)
    ]


def nested(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """
    A mapping with each value at its path.

    A place in a list is a key like any other: of a list that is known in part, it is unknown what
    stands before it. A value at a path below that of another one is the other one's matter.
    """
    whole: dict[str, Any] = {}
    for path, value in values:
        *above, last = [str(part) for part in path_parts(path)] or [path]
        inside: Any = whole
        for part in above:
            inside = inside.setdefault(part, {}) if isinstance(inside, dict) else None
        if isinstance(inside, dict):
            inside[last] = value
    return whole


# The whole documents before and after one change.
# Documents come sealed. What a change was planned against it carries itself; what it leads to as
# well where something in it is sealed, else it is in the step that carries it out.

LEAVING = frozenset({Action.DELETE, Action.FORGET, Action.ARCHIVE})
"""After these there is no document."""


def document_before(change: Change) -> Mapping[str, Any] | None:
    if change.before is not None:
        return change.before
    # Rules have no document of their own: what changes is all that there is.
    known = [(one.path, one.before) for one in change.fields if one.before_set]
    return nested(known) if known else None


def document_after(change: Change) -> Mapping[str, Any] | None:
    if change.action in LEAVING:
        return None
    if change.after is not None:
        return change.after
    for step in reversed(change.steps):
        document = step.arguments.get("document")
        if document is not None:
            shown: Mapping[str, Any] = document
            return shown
    if change.before is not None:
        # A pure move changes nothing of it.
        return None if change.fields or not change.moved_from else change.before
    known = [(one.path, one.after) for one in change.fields if one.after_set]
    return nested([("type", change.type), *known]) if known else None


ALL_OF_THEM = "`fleetform plan --format json` lists them"

NAMES_MAX = 10
"""Elements of a block that are named one by one, where its title names only the first."""

GROUP_MIN = 4
"""Elements from which on a group is shorter than its members and says as much."""


@dataclass(frozen=True, slots=True)
class Group:
    """
    Changes shown as one, or a single one.

    Values that members do not share are shown by template, or one by one: see `fold`.
    """

    changes: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def is_many(self) -> bool:
        return len(self.changes) > 1

    @property
    def may_force(self) -> bool:
        """Whether fields are the cause of a replacement: not where one element replaces another."""
        return self.first.action is Action.REPLACE and not self.first.replaces

    @property
    def title(self) -> str:
        """`task train`, or `task array[1-1000]  1000 elements`."""
        if not self.is_many:
            return f"{self.first.type} {printable(self.first.key.name)}"
        named = name_elements(self.changes)
        parent = printable(self.first.parent)
        return f"{self.first.type} {parent}{named.text}  {len(self.changes)} elements"

    @property
    def names(self) -> str:
        """The elements, or the first of them and how many follow; empty where the title has all."""
        if not self.is_many or self.first.replaces or name_elements(self.changes).is_complete:
            return ""
        shown = ", ".join(printable(element_of(one)) for one in self.changes[:NAMES_MAX])
        more = len(self.changes) - NAMES_MAX
        return shown if more <= 0 else f"{shown} and {more} more: {ALL_OF_THEM}"


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """Held changes with one group's looks and one cure."""

    group: Group
    held: Held


def group_changes(changes: Iterable[Change]) -> tuple[Group, ...]:
    """Groups in the order of their first members."""
    members: dict[tuple[object, ...], list[Change]] = {}
    groups: list[Group] = []
    for change in changes:
        if change.parent:
            members.setdefault(_looks(change), []).append(change)
        else:
            # A single resource looks like nothing else.
            groups.append(Group((change,)))
    for unsorted in members.values():
        together = sorted(unsorted, key=lambda change: natural_order(change.key.name))
        if len(together) >= GROUP_MIN:
            groups.append(Group(tuple(together)))
        else:
            groups.extend(Group((change,)) for change in together)
    return tuple(sorted(groups, key=_order))


def group_held(held: Iterable[Held]) -> tuple[HeldGroup, ...]:
    """The same of what is held, apart by what holds it and what would release it."""
    by_cause: dict[tuple[object, ...], list[Held]] = {}
    for one in held:
        by_cause.setdefault((one.by, one.detail, one.cure), []).append(one)
    groups = [
        HeldGroup(group, together[0])
        for together in by_cause.values()
        for group in group_changes(one.change for one in together)
    ]
    return tuple(sorted(groups, key=lambda one: _order(one.group)))


def split_held(held: Iterable[Held]) -> tuple[tuple[HeldGroup, ...], tuple[HeldGroup, ...]]:
    """
    Changes that a user can unblock, and changes that another version of fleetform will support.

    A reader has to decide about the first; the second is to be known, and may be long.
    """
    waiting: list[Held] = []
    beyond: list[Held] = []
    for one in held:
        (beyond if one.by is HeldBy.NOT_SUPPORTED else waiting).append(one)
    return group_held(waiting), group_held(beyond)


def _order(group: Group) -> tuple[str, list[tuple[float, str]]]:
    """As people count: `arr[2]` stands before `arr[10]`."""
    return group.first.key.kind, natural_order(group.first.key.name)


def _looks(change: Change) -> tuple[object, ...]:
    same = (change.key.kind, change.parent, change.action, change.reasons)
    return (*same, change.destructive, bool(change.fields))


# The fields of many elements, as few rows that give the value of each.
# What all elements have in common is one row. What differs is shown as the text that it was made
# from, with `${{ matrix.lr }}` in it, where there is one (`templates` proves it), and else value by
# value with the elements that have it. Nothing is left out without being counted.

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


# The fields of a change, or of many elements' changes, as lines for a terminal.

PATH_WIDTH = 40
"""Columns up to which the paths of a block are aligned; a longer one pushes its own value only."""


INDENT = " " * 6


def field_lines(group: Group) -> Iterator[Line]:
    """Write what `fold` found of a group, aligned."""
    change = group.first
    # What is made has no other side; what returns is compared with what it was.
    is_new = change.action in _CREATES and not any(
        one.before_set for each in group.changes for one in each.fields
    )
    folds = fold(group)
    paths = [f"{one.field.path}{f' of {one.elements}' if one.elements else ''}" for one in folds]
    width = _width(paths)
    for path, one in zip(paths, folds, strict=True):
        if one.more:
            yield line(INDENT, (more_text(one), "dim"))
            continue
        row = field_row(change.key.kind, one.field)._replace(path=path)
        note = FORCES if row.forces and group.may_force else ""
        yield from row_lines(row, INDENT, width=width, is_new=is_new, note=note)


_CREATES = frozenset({Action.CREATE, Action.ADOPT})


def row_lines(
    row: FieldRow, indent: str, *, width: int = 0, is_new: bool = False, note: str = ""
) -> Iterator[Line]:
    """Write one row; a text of several lines as its difference, below its path."""
    comment = [Span(f"  # {note}", "dim")] if note else []
    if row.lines:
        yield line(f"{indent}{row.path}:", *comment)
        for one in row.lines:
            yield line(f"{indent}  ", (str(one), TONES[one.sign]))
        return
    path = f"{indent}{row.path}: {' ' * (width - len(row.path))}"
    yield line(path, *([Span(row.after or "")] if is_new else _sides(row)), *comment)


def _width(paths: Sequence[str]) -> int:
    lengths = list(map(len, paths))
    widest = max(lengths, default=0)
    if widest <= PATH_WIDTH:
        return widest
    return max([length for length in lengths if length <= PATH_WIDTH], default=0)


def _sides(row: FieldRow) -> list[Span]:
    if row.before is not None and row.before == row.after:
        return [Span(row.before), Span(f"  # {SAME_TEXT}", "dim")]
    before = Span("(not set)", "dim") if row.before is None else Span(row.before, "bad")
    after = Span("(not set)", "dim") if row.after is None else Span(row.after, "good")
    return [before, Span(" → ", "dim"), after]

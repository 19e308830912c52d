"""
What differs between two canonical documents, field by field.

Maps are compared by key, lists of things with an identity by that (files by path, volumes by
name, dependencies by run), other lists by item, so that a line inserted in the middle of
`commands` is one change and not one for each line below it. A range `{"min", "max"}` is one
value: nobody reads half of it. What a change of a field means comes from `spec.fields` alone.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fleetform.model.plan import FieldChange
from fleetform.spec import fields

# Keys of these maps are the user's own: `env: {min: 1}` is no range.
_FREE_MAPS = frozenset({"env", "tags", "matrix"})

_RANGE_KEYS = frozenset({"min", "target", "max"})

_IDENTITY: Mapping[str, str] = {"files": "path", "volumes": "name", "depends_on.runs": "run"}

ALIGN_MAX = 250_000
"""
Product of two lists' lengths above which they are compared place by place.

Alignment costs up to that product; 500 commands against 500 take some 50 ms, and a script of
that size is read in an editor, not in a plan.
"""


class _Missing:
    """A side on which the field is not set; None is a value of its own: an open bound."""


_MISSING = _Missing()


class _Field(NamedTuple):
    """`shown` is what people read, `known` the path that `spec.fields` has a row for."""

    shown: str
    known: str

    def key(self, name: str) -> _Field:
        plain = name.replace("_", "a").replace("-", "a").isalnum()
        shown = name if plain else f"[{json.dumps(name, ensure_ascii=False)}]"
        joint = "." if self.shown and plain else ""
        return _Field(
            f"{self.shown}{joint}{shown}",
            self.known if self.known in _FREE_MAPS else f"{self.known}.{name}".lstrip("."),
        )

    def item(self, place: int | str) -> _Field:
        inside = json.dumps(place, ensure_ascii=False)
        return _Field(f"{self.shown}[{inside}]", self.known)


_ROOT = _Field("", "")


def changed_fields(
    kind: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[FieldChange, ...]:
    """
    Compare two canonical documents of one kind.

    Returns:
        In order of path as first met: top-level fields sorted by name. Empty when the
        documents mean the same, whatever their digests say. `forces` is set by what
        `spec.fields` says a change does, whatever the state: that a run is only waiting
        is the planner's to know.
    """
    return tuple(
        FieldChange(
            path=field.shown,
            before=None if old is _MISSING else old,
            after=None if new is _MISSING else new,
            before_set=old is not _MISSING,
            after_set=new is not _MISSING,
            forces=fields.on_change(kind, field.known) in {"replace", "rerun"},
            field_class=str(fields.field_class(kind, field.known)),
        )
        for field, old, new in _compare_maps(_ROOT, before, after)
    )


def set_fields(kind: str, document: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """All that a new document sets, one change a top-level field: what a creation shows."""
    return tuple(
        [
            FieldChange(name, None, document[name], False, True, False, _class_of(kind, name))
            for name in sorted(document)
            if name != "type"
        ]
    )


@functools.cache
def _class_of(kind: str, name: str) -> str:
    return str(fields.field_class(kind, name))


_Difference = tuple[_Field, Any, Any]


def _compare(field: _Field, old: Any, new: Any) -> Iterator[_Difference]:
    if _same(old, new):
        return
    if _is_map(field, old, new):
        yield from _compare_maps(field, old, new)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        yield from _compare_lists(field, old, new)
    else:
        yield field, old, new


def _same(old: Any, new: Any) -> bool:
    if type(old) is not type(new) or old != new:
        return False
    if not isinstance(old, Mapping | list | tuple):
        return True
    # To Python `[False]` equals `[0]`; a program that is given the one or the other differs.
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _is_map(field: _Field, old: Any, new: Any) -> bool:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return False
    if field.known in _FREE_MAPS:
        return True
    return not (_is_range(old) and _is_range(new))


def _is_range(value: Mapping[str, Any]) -> bool:
    return bool(value) and value.keys() <= _RANGE_KEYS


def _compare_maps(
    field: _Field, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[_Difference]:
    for name in sorted(old.keys() | new.keys()):
        yield from _compare(field.key(name), old.get(name, _MISSING), new.get(name, _MISSING))


def _compare_lists(field: _Field, old: Sequence[Any], new: Sequence[Any]) -> Iterator[_Difference]:
    identity = _IDENTITY.get(field.known)
    if identity is not None:
        old_items, new_items = _by_identity(old, identity), _by_identity(new, identity)
        if old_items is not None and new_items is not None:
            for name in sorted(old_items.keys() | new_items.keys()):
                yield from _compare(
                    field.item(name), old_items.get(name, _MISSING), new_items.get(name, _MISSING)
                )
            return
    yield from _compare_items(field, old, new)


def _by_identity(items: Sequence[Any], identity: str) -> dict[str, Any] | None:
    """
    Items by their name, or None when one has none or shares it: then places count.

    A mount of several volumes has a list of names, which is no name.
    """
    found = {
        item[identity]: item
        for item in items
        if isinstance(item, Mapping) and isinstance(item.get(identity), str)
    }
    return found if len(found) == len(items) else None


def _compare_items(field: _Field, old: Sequence[Any], new: Sequence[Any]) -> Iterator[_Difference]:
    for old_from, old_to, new_from, new_to in _blocks(old, new):
        shared = min(old_to - old_from, new_to - new_from)
        for offset in range(shared):
            yield from _compare(
                field.item(new_from + offset), old[old_from + offset], new[new_from + offset]
            )
        for place in range(old_from + shared, old_to):
            yield field.item(place), old[place], _MISSING
        for place in range(new_from + shared, new_to):
            yield field.item(place), _MISSING, new[place]


def _blocks(old: Sequence[Any], new: Sequence[Any]) -> Iterator[tuple[int, int, int, int]]:
    """Stretches that differ, as bounds in both lists."""
    if len(old) * len(new) > ALIGN_MAX:
        yield 0, len(old), 0, len(new)
        return
    # Few plans change lists, and its import is a hundredth of one.
    from difflib import SequenceMatcher

    # Items may be maps, which a matcher cannot hash; their JSON stands for them.
    matcher = SequenceMatcher(
        None,
        [json.dumps(item, sort_keys=True) for item in old],
        [json.dumps(item, sort_keys=True) for item in new],
        autojunk=False,
    )
    for operation, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if operation != "equal":
            yield old_from, old_to, new_from, new_to

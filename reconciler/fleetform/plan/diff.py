"""
What differs between two canonical documents, field by field.

Maps are compared by key, lists of things with an identity by that (files by path, volumes by
name, dependencies by run, hosts by host name), other lists by item, so that a line inserted in the middle of
`commands` is one change and not one for each line below it. A range `{"min", "max"}` is one
value: nobody reads half of it. What a change of a field means comes from `spec.fields` alone.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from fleetform.model.plan import Action, Change, FieldChange
from fleetform.model.redaction import Seal
from fleetform.plan.redaction import sealed_field
from fleetform.spec import fields
from fleetform.spec.desired import Declared, Desired, ResourceKey

__all__ = ["ALIGN_MAX", "changed_fields", "differences", "run_differences", "set_fields"]


# Keys of these maps are the user's own: `env: {min: 1}` is no range.
_FREE_MAPS = frozenset({"env", "tags", "matrix"})

_RANGE_KEYS = frozenset({"min", "target", "max"})

_IDENTITY: Mapping[str, str] = {
    "files": "path",
    "volumes": "name",
    "depends_on.runs": "run",
    "ssh_config.hosts": "hostname",
}

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
            forces=fields.row(kind, field.known).on_change in {"replace", "rerun"},
            field_class=str(fields.row(kind, field.known).field_class),
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
    return str(fields.row(kind, name).field_class)


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


# What two declarations do not have in common, as changes that lead from one to the other.
# Nothing live is asked: two commits, or two environments, are compared as they are written. So a
# change here says nothing of what a plan would do, which depends on where each run stands.
# They are compared as they are, and shown sealed: what a commit of last year has of secrets is not
# the text of whoever asks. Each side has its own environment's key.


def differences(before: Desired, after: Desired) -> tuple[Change, ...]:
    """
    Compare all that two trees declare, also what nothing carries out yet.

    Returns:
        By key; `CREATE` for what only `after` has, `DELETE` for what only `before` has. Empty
        when they mean the same. Names and uids of the environments are not compared.
    """
    old, new = _declared(before), _declared(after)
    seals = Seal(before.environment.uid), Seal(after.environment.uid)
    found = [*_rules(before, after)]
    for key in sorted(old.keys() | new.keys()):
        found.extend(_compared(old.get(key), new.get(key), seals))
    return tuple(found)


def run_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], seal: Seal
) -> tuple[FieldChange, ...]:
    """Compare the documents of two runs of one environment, as its ledger has them."""
    fields = changed_fields("run", before, after)
    return tuple([sealed_field(seal, seal, "run", one) for one in fields])


def _declared(desired: Desired) -> Mapping[ResourceKey, Declared]:
    beyond = {key: one.declared for key, one in desired.beyond.items()}
    return {**desired.resources, **beyond} if beyond else desired.resources


def _rules(before: Desired, after: Desired) -> Iterator[Change]:
    old, new = asdict(before.environment.rules), asdict(after.environment.rules)
    if old == new:
        return
    yield Change(
        key=ResourceKey("environment", after.environment.name),
        action=Action.UPDATE,
        reasons=(),
        type="environment",
        fields=changed_fields("environment", {"rules": old}, {"rules": new}),
    )


def _compared(
    old: Declared | None, new: Declared | None, seals: tuple[Seal, Seal]
) -> Iterator[Change]:
    one = new or old
    assert one is not None, "a key comes from one of the two"
    if old is None:
        action, fields = Action.CREATE, set_fields(one.key.kind, one.document)
    elif new is None:
        action, fields = Action.DELETE, ()
    elif old.digest == new.digest:
        return
    else:
        action = Action.UPDATE
        fields = changed_fields(one.key.kind, old.document, new.document)
        if not fields and old.type == new.type:
            return
    yield Change(
        key=one.key,
        action=action,
        reasons=(),
        type=one.type,
        fields=tuple([sealed_field(*seals, one.key.kind, field) for field in fields]),
        parent=one.parent,
        element=one.element,
        before=None if old is None else seals[0].value(one.key.kind, "", old.document),
        after=None if new is None else seals[1].value(one.key.kind, "", new.document),
    )

"""
The text of a plan: canonical JSON, piece by piece.

The standard library's encoder would be asked for a dictionary of each value, sort it, and write
its names anew: for a plan of a hundred thousand changes that was a fifth of all the time. What
there are many of (changes, fields, steps, predicates) is written here in place, in the order of
names that the encoder would have chosen; everything else it writes itself. `checker` writes the
digest's text once more, by means of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import Any

from fleetform.model.plan import Change, Deferred, FieldChange, Held, Predicate, Step
from fleetform.spec.canonical import plain_json
from fleetform.spec.desired import ResourceKey

__all__ = ["Writer"]

BATCH = 500
"""Values that are joined to one piece: half a megabyte of changes, and hardly any call for each."""

KNOWN_MAX = 4096
"""Lists and maps whose text is remembered: those of a document, and what a sweep shares."""


class Writer:
    """
    One plan's way to text.

    Args:
        encode: Writes any value that is not written here; canonical, as all of it is.
    """

    def __init__(self, encode: Callable[[Any], str]) -> None:
        self._encode = encode
        # By identity, since the plan keeps all of them alive while it is written: what a document
        # has stands in a step and in the fields too, and elements of a sweep share most of it.
        self._known: dict[int, str] = {}
        self._writers: dict[type, Callable[[Any], str]] = {
            Change: self._change,
            Deferred: self._deferred,
            Held: self._held,
            Predicate: self._predicate,
        }

    def pieces(self, body: Mapping[str, Any]) -> Iterator[str]:
        """The text of a plan's body; joined, it is what the encoder would write."""
        opening = "{"
        for name in sorted(body):
            yield f"{opening}{quoted(name)}:"
            value = body[name]
            if isinstance(value, tuple):
                yield from self._listed(value)
            else:
                yield self._encode(value)
            opening = ","
        yield "}"

    def _listed(self, values: Sequence[Any]) -> Iterator[str]:
        yield "["
        rest, opening = iter(values), ""
        while batch := list(islice(rest, BATCH)):
            texts = [self._writers.get(type(one), self._encode)(one) for one in batch]
            yield opening + ",".join(texts)
            opening = ","
            if len(self._known) > KNOWN_MAX:
                self._known.clear()
        yield "]"

    def _change(self, one: Change) -> str:
        value = self._value
        before = "null" if one.before is None else value(one.before)
        after = "null" if one.after is None else value(one.after)
        fields = ",".join([self._field(field) for field in one.fields])
        steps = ",".join([self._step(step) for step in one.steps])
        reasons = ",".join([f'"{reason.value}"' for reason in one.reasons])
        return (
            f'{{"action":"{one.action.value}","after":{after}'
            f',"at_stake":{quoted(one.at_stake)},"before":{before}'
            f',"cost_after":{value(one.cost_after)},"cost_before":{value(one.cost_before)}'
            f',"destructive":{"true" if one.destructive else "false"},"element":{quoted(one.element)}'
            f',"fields":[{fields}],"generation":{one.generation},"key":{_key(one.key)}'
            f',"moved_from":{quoted(one.moved_from)},"parent":{quoted(one.parent)}'
            f',"reasons":[{reasons}],"replaces":{quoted(one.replaces)}'
            f',"stake":{value(one.stake)},"steps":[{steps}],"type":{quoted(one.type)}'
            f',"uid":{quoted(one.uid)}}}'
        )

    def _field(self, one: FieldChange) -> str:
        # A side that is not set is left out, so that null stays a value.
        after = f'"after":{self._value(one.after)},' if one.after_set else ""
        before = f'"before":{self._value(one.before)},' if one.before_set else ""
        sensitive = ',"sensitive":true' if one.sensitive else ""
        unknown = ',"unknown":true' if one.unknown else ""
        return (
            f'{{{after}{before}"class":"{one.field_class}","forces":{"true" if one.forces else "false"}'
            f',"path":{quoted(one.path)}{sensitive}{unknown}}}'
        )

    def _step(self, one: Step) -> str:
        needs = ",".join([quoted(need) for need in one.needs])
        return (
            f'{{"arguments":{self._mapping(one.arguments)},"key":{quoted(one.key)}'
            f',"needs":[{needs}],"resource":{_key(one.resource)},"verb":{quoted(one.verb)}}}'
        )

    def _held(self, one: Held) -> str:
        return (
            f'{{"awaited":{self._mapping(one.awaited)},"by":"{one.by.value}"'
            f',"change":{self._change(one.change)}'
            f',"cure":{quoted(one.cure)},"detail":{quoted(one.detail)}}}'
        )

    def _deferred(self, one: Deferred) -> str:
        return f'{{"change":{self._change(one.change)},"why":{quoted(one.why)}}}'

    @staticmethod
    def _predicate(one: Predicate) -> str:
        resource = "null" if one.resource is None else _key(one.resource)
        return f'{{"claim":{quoted(one.claim)},"resource":{resource},"value":{quoted(one.value)}}}'

    def _mapping(self, value: Mapping[str, Any]) -> str:
        """A map whose values may be known; of most plans, a few shapes are all there are."""
        form, names = _shape(tuple(value))
        return form % tuple(
            [
                quoted(one) if type(one) is str else self._inner(name, one)
                for name in names
                for one in (value[name],)
            ]
        )

    def _inner(self, name: str, value: Any) -> str:
        if name == "document" and type(value) is dict:
            return self._mapping(value)
        return self._value(value)

    def _value(self, value: Any) -> str:
        if value is None:
            return "null"
        kind = type(value)
        if kind is str:
            return quoted(value)
        if kind is bool:
            return "true" if value else "false"
        if kind is not dict and kind is not list:
            return self._encode(value)
        text = self._known.get(id(value))
        if text is None:
            text = self._known[id(value)] = plain_json(value)
        return text


def _key(key: ResourceKey) -> str:
    return f'["{key.kind}",{quoted(key.name)}]'


@lru_cache(maxsize=256)
def _shape(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """How a map of these names is written, with a place for each value, and their order."""
    order = tuple(sorted(names))
    places = ",".join([f"{quoted(name)}:".replace("%", "%%") + "%s" for name in order])
    return f"{{{places}}}", order

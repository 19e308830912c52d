"""
The order of fields, read from the models: a kind that is added brings its own along.

First what every document has, so that each begins alike; then what the kind says leads to all
else; then what is the kind's own, because it is what a reader looks for; then what kinds share.
A key that no model declares stays behind the one it stands behind, and in a mapping of the
user's own names nothing is moved.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, PlainValidator

from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Document, written_fields

__all__ = ["Arranged", "Hints", "arrange", "hints_of_document", "hints_of_item"]

# Before anything else: which document or part it is.
_HEAD = ("type", "name")
# Of a document next: what people say about it.
_WORDS = ("description", "tags")


class _Shape(NamedTuple):
    """A mapping with the fields of `model`, in this order."""

    model: type
    names: tuple[str, ...]


class _Many(NamedTuple):
    """A list, or a mapping of the user's own names, and what is in it."""

    item: Hints
    is_list: bool


Hints: TypeAlias = tuple[_Shape | _Many, ...]
"""What a value may be; empty where no model says anything about it."""


class Arranged(NamedTuple):
    """
    How a mapping is written.

    Attributes:
        order: The positions of its keys, in the order in which they are to stand.
        below: What each key's value may be, keys in the order given.
    """

    order: tuple[int, ...]
    below: tuple[Hints, ...]


@functools.cache
def hints_of_document(type_name: str) -> Hints | None:
    """Return what a document of this type has; None when fleetform has no such type."""
    if type_name == "environment":
        return (_shape(EnvironmentDocument),)
    kind = KINDS.get(type_name)
    return None if kind is None else (_shape(kind.model),)


@functools.lru_cache(maxsize=4096)
def arrange(hints: Hints, keys: tuple[str, ...]) -> Arranged:
    """
    Return how a mapping with these keys is written.

    Kept for later, because the documents of a tree are much alike.
    """
    shape = _fitting(hints, keys)
    own_names = _inside(hints, is_list=False)
    if shape is None:
        return Arranged(tuple(range(len(keys))), (own_names,) * len(keys))
    below = tuple(
        _field_hints(shape.model, key) if key in shape.names else own_names for key in keys
    )
    return Arranged(_ranked(shape, keys), below)


@functools.lru_cache(maxsize=1024)
def hints_of_item(hints: Hints) -> Hints:
    """Return what an item of the list may be."""
    return _inside(hints, is_list=True)


def _ranked(shape: _Shape, keys: Sequence[str]) -> tuple[int, ...]:
    places = {name: place for place, name in enumerate(shape.names)}
    ranks: list[int] = []
    for key in keys:
        # What no model declares follows what it stands behind.
        ranks.append(places.get(key, ranks[-1] if ranks else -1))
    return tuple(sorted(range(len(keys)), key=ranks.__getitem__))


def _fitting(hints: Hints, keys: Sequence[str]) -> _Shape | None:
    """Return the shape that knows most of the keys; the first of several."""
    shapes = [hint for hint in hints if isinstance(hint, _Shape)]
    best = max(shapes, key=lambda shape: sum(key in shape.names for key in keys), default=None)
    return best if best is not None and any(key in best.names for key in keys) else None


def _inside(hints: Hints, *, is_list: bool) -> Hints:
    return tuple(
        below
        for hint in hints
        if isinstance(hint, _Many) and hint.is_list is is_list
        for below in hint.item
    )


@functools.cache
def _shape(model: type) -> _Shape:
    if issubclass(model, BaseModel):
        return _Shape(model, tuple(_field_order(model)))
    assert dataclasses.is_dataclass(model), model
    return _Shape(model, tuple(field.name for field in dataclasses.fields(model)))


def _field_order(model: type[BaseModel]) -> list[str]:
    declared = written_fields(model)
    written = {name: field.alias or name for name, field in model.model_fields.items()}
    ordered = dict.fromkeys(name for name in _HEAD if name in declared)
    if issubclass(model, Document):
        first = (*_WORDS, *Document.model_fields, *model.leading)
        ordered.update(dict.fromkeys(name for name in first if name in declared))
    for owner in model.__mro__:
        own = inspect.get_annotations(owner)
        ordered.update(dict.fromkeys(written[name] for name in own if name in written))
    ordered.update(dict.fromkeys(declared))
    return list(ordered)


@functools.cache
def _field_hints(model: type, name: str) -> Hints:
    if not issubclass(model, BaseModel):
        return ()
    field = written_fields(model)[name]
    found = [*_hints(field.annotation), *_hints_of_validators(field.metadata)]
    return tuple(dict.fromkeys(found))


def _hints(annotation: Any) -> Iterator[_Shape | _Many]:
    origin = get_origin(annotation)
    if origin is Annotated:
        annotation, *metadata = get_args(annotation)
        yield from _hints(annotation)
        yield from _hints_of_validators(metadata)
    elif origin is Union or origin is types.UnionType:
        for one in get_args(annotation):
            yield from _hints(one)
    elif origin in {list, tuple, frozenset, set} or origin is Sequence:
        inside = tuple(hint for one in get_args(annotation) for hint in _hints(one))
        yield _Many(inside, is_list=True)
    elif origin is dict or origin is Mapping:
        yield _Many(tuple(_hints(get_args(annotation)[1])), is_list=False)
    elif isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)
    ):
        yield _shape(annotation)


def _hints_of_validators(metadata: Sequence[Any]) -> Iterator[_Shape | _Many]:
    """Shorter spellings, such as a list where the model has a mapping with that list in it."""
    for one in metadata:
        if isinstance(one, BeforeValidator | PlainValidator):
            yield from _hints(one.json_schema_input_type)

"""
A plan as bytes: what `plan --out` writes, the ledger keeps, and `apply FILE` carries out.

JSON with sorted keys, so that the same plan is the same file. The digest covers the body
without the annex, in which times and ages are. Loading trusts nothing: a file that was edited,
cut short, or written by a newer release is refused with a sentence.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from fleetform.model.plan import FORMAT_VERSION, Change, FieldChange, Held, Plan
from fleetform.model.redaction import fingerprint
from fleetform.spec.desired import ResourceKey, Rules

__all__ = ["dump", "held_of", "is_plan", "load", "recorded_whole", "sealed"]


T = TypeVar("T")

_FORMAT = "fleetform-plan"

_UNSEALED = frozenset({"annex", "digest"})


def sealed(plan: Plan) -> Plan:
    """Return the plan with its digest, over all but digest and annex."""
    return replace(plan, digest=_digest(_body(plan)))


def dump(plan: Plan) -> bytes:
    """Write a sealed plan; one line, with a newline at its end."""
    whole = {**_body(plan), "annex": dict(plan.annex), "digest": plan.digest}
    return b"".join([*_pieces(whole), b"\n"])


def is_plan(data: bytes) -> bool:
    """Tell whether `dump` wrote this, also in another release, and where it was cut short."""
    # Keys are sorted: so begins each plan, and hardly anything else that people keep.
    return data.startswith(b'{"annex":{')


def load(data: bytes) -> Plan:
    """
    Read what `dump` wrote.

    Raises:
        ValueError: With a sentence: it is no plan, it is from a newer release, or it is not
            what was written.
    """
    try:
        whole = json.loads(data)
    except ValueError as error:
        raise ValueError("the file is not a plan: it is not JSON, or it is incomplete") from error
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise ValueError("the file is JSON, but not a plan of fleetform")
    version = whole.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ValueError(
            f"the plan has format {version}, and this release reads up to {FORMAT_VERSION}:"
            " apply it with the release that created it, or plan again"
        )
    try:
        plan = _plan(whole)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"the plan is damaged: {_damage(error)}") from error
    # Over what the file says, so that a key this release would not read is noticed as well.
    if _digest({key: whole[key] for key in whole if key not in _UNSEALED}) != plan.digest:
        raise ValueError(
            "the plan was changed after it was written: its digest does not match; plan again"
        )
    return plan


def held_of(bodies: Sequence[Any]) -> tuple[Held, ...]:
    """Read the part of a plan that says what it holds back."""
    return _many(_reader_of(Held), bodies)


def _damage(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


# -- values to JSON ------------------------------------------------------------------------


def _body(plan: Plan) -> dict[str, Any]:
    """Everything that the digest covers; the values in it are written by `_fields_of`."""
    body = {one.name: getattr(plan, one.name) for one in fields(Plan) if one.name not in _UNSEALED}
    rules = None if plan.rules is None else plan.rules.document()
    return {**body, "format": _FORMAT, "rules": rules}


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a value when the encoder meets it, so that no second tree of all values is built."""
    if isinstance(value, FieldChange):
        return _field_body(value)
    kind: Any = type(value)
    names, read = _attributes_of(kind)
    body = dict(zip(names, read(value), strict=True))
    if kind is Change and value.cost_max is None:
        # A later field: left out, so that plans without it keep their digests.
        del body["cost_max"]
    return body


def _field_body(one: FieldChange) -> dict[str, Any]:
    # A side that is not set is left out, so that null stays a value.
    body: dict[str, Any] = {"path": one.path, "forces": one.forces, "class": one.field_class}
    if one.before_set:
        body["before"] = one.before
    if one.after_set:
        body["after"] = one.after
    if one.sensitive:
        body["sensitive"] = True
    if one.unknown:
        body["unknown"] = True
    return body


@functools.cache
def _attributes_of(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], Any]]:
    names = tuple(field.name for field in fields(kind))
    return names, attrgetter(*names)


# Plans are made of frozen values, which have no cycles to look for.
_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
    default=_fields_of,
)


def _pieces(body: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the text, one change or the like at a time: that of a large plan is never in memory as a whole."""
    opening = "{"
    for name in sorted(body):
        yield f'{opening}"{name}":'.encode()
        value = body[name]
        if isinstance(value, tuple):
            yield b"["
            for number, one in enumerate(value):
                yield (b"," if number else b"") + _encoded(one)
            yield b"]"
        else:
            yield _encoded(value)
        opening = ","
    yield b"}"


def _encoded(value: Any) -> bytes:
    # A lone surrogate can come out of a quoted escape in YAML; it must not stop a plan.
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def _digest(body: Mapping[str, Any]) -> str:
    found = hashlib.sha256()
    for piece in _pieces(body):
        found.update(piece)
    return found.hexdigest()


# -- JSON to values ------------------------------------------------------------------------


_LATER: Mapping[type[Any], frozenset[str]] = {
    Plan: frozenset({"deferred", "scope", "overrides", "kept", "recovering", "salt", "destroys"}),
    Change: frozenset(
        {"moved_from", "cost_before", "cost_after", "cost_max", "stake", "before", "after"}
    ),
    Held: frozenset({"awaited"}),
}
"""Fields that format 1 had not: an apply that was interrupted before an upgrade is resumed without them."""


@functools.cache
def _reader_of(hint: Any) -> Callable[[Any], Any]:
    """Return the function that reads a JSON value as this type."""
    if hint in _READERS:
        return _READERS[hint]
    arguments = get_args(hint)
    if type(None) in arguments:
        read = _reader_of(arguments[0])
        return lambda value: None if value is None else read(value)
    if get_origin(hint) is tuple:
        return partial(_many, _reader_of(arguments[0]))
    if issubclass(hint, enum.Enum):
        enumeration: type[enum.Enum] = hint
        return enumeration
    hints, later = get_type_hints(hint), _LATER.get(hint, frozenset())
    readers = [(name, _reader_of(hints[name])) for name in _attributes_of(hint)[0]]
    return lambda body: hint(
        **{name: read(body[name]) for name, read in readers if name not in later or name in body}
    )


def _plan(whole: Mapping[str, Any]) -> Plan:
    # Format 1 had the uid itself.
    if "environment_uid" in whole:
        shown = fingerprint(_text(whole["environment_uid"]))
        whole = {**whole, "environment_fingerprint": shown}
    found: Plan = _reader_of(Plan)(whole)
    return found


def _field(body: Mapping[str, Any]) -> FieldChange:
    return FieldChange(
        path=_text(body["path"]),
        before=body.get("before"),
        after=body.get("after"),
        before_set="before" in body,
        after_set="after" in body,
        forces=bool(body["forces"]),
        field_class=_text(body["class"]),
        sensitive=bool(body.get("sensitive", False)),
        unknown=bool(body.get("unknown", False)),
    )


def _key(body: Any) -> ResourceKey:
    kind, name = body
    return ResourceKey(_text(kind), _text(name))


def _many(read: Callable[[Any], T], items: Sequence[Any]) -> tuple[T, ...]:
    if not isinstance(items, list):
        raise TypeError("one of its values is not a list")
    return tuple(read(item) for item in items)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not a string")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is not a whole number")
    return value


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    str: _text,
    int: _whole,
    bool: bool,
    Mapping[str, Any]: dict,
    Mapping[str, str]: lambda value: {_text(key): _text(one) for key, one in value.items()},
    ResourceKey: _key,
    Rules: Rules.of,
    FieldChange: _field,
}
"""Types that are not read field by field."""


# What a recorded plan holds back, read without the rest of it.
# The plan of ten thousand new runs is 20 MB of JSON, and a reader of an environment's state
# waits for the answer. `plan.serialize.load` reads a plan that is to be carried out, and checks its digest.

# Keys are sorted. No document can have the first three of a plan side by side, with such values.
_HELD = re.compile(rb'"format":"fleetform-plan","format_version":\d+,"held":')
_DESTROYS = re.compile(rb'"destroys":true,"digest":"[0-9a-f]*","environment_fingerprint":"')
_SCOPE = b'"scope":{"excludes":['


class RecordedWhole(NamedTuple):
    """What a plan of the whole environment holds back; `destroys`: it removes everything."""

    destroys: bool
    held: tuple[Held, ...]


def recorded_whole(body: bytes) -> RecordedWhole | None:
    """
    Read what a plan of the whole environment holds back, as `plan.serialize.dump` wrote it.

    None where it says nothing of the whole, because it is of a part.
    """
    if (found := _HELD.search(body)) is None:
        return None
    # The last one: a document before it may have a key of that name.
    place = body.rfind(_SCOPE)
    scope = _value(body, place + len(b'"scope":')) if place >= 0 else {}
    if scope.get("targets") or scope.get("excludes"):
        return None
    return RecordedWhole(_DESTROYS.search(body) is not None, held_of(_value(body, found.end())))


def _value(body: bytes, at: int) -> Any:
    value, _end = json.JSONDecoder().raw_decode(body[at:].decode("utf-8", "surrogatepass"))
    return value

"""
A plan as bytes: what `plan --out` writes, the ledger keeps, and `apply FILE` carries out.

JSON with sorted keys, so that the same plan is the same file. The digest covers the body
without the annex, in which times and ages are. Loading trusts nothing: a file that was edited,
cut short, or written by a newer release is refused with a sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import (
    FORMAT_VERSION,
    Action,
    Change,
    Deferred,
    FieldChange,
    Held,
    HeldBy,
    Impact,
    Kept,
    Permissions,
    Plan,
    Predicate,
    Reason,
    Scope,
    Settled,
    Step,
)
from fleetform.model.redaction import fingerprint
from fleetform.spec.desired import ResourceKey, Rules

__all__ = ["dump", "held_of", "is_plan", "load", "recorded_holds", "sealed"]


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
    return _many(_held, bodies)


def _damage(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


# -- values to JSON ------------------------------------------------------------------------


def _body(plan: Plan) -> dict[str, Any]:
    """Everything that the digest covers; the values in it are written by `_fields_of`."""
    return {
        "format": _FORMAT,
        "format_version": plan.format_version,
        "environment_fingerprint": plan.environment_fingerprint,
        "environment_name": plan.environment_name,
        "ledger_id": plan.ledger_id,
        "epoch": plan.epoch,
        "commit": plan.commit,
        "tree_digest": plan.tree_digest,
        "rules": None if plan.rules is None else plan.rules.document(),
        "changes": plan.changes,
        "held": plan.held,
        "settled": plan.settled,
        "progressing": plan.progressing,
        "predicates": plan.predicates,
        "warnings": plan.warnings,
        "deferred": plan.deferred,
        "scope": plan.scope,
        "overrides": plan.overrides,
        "kept": plan.kept,
        "recovering": plan.recovering,
        "salt": plan.salt,
        "destroys": plan.destroys,
    }


def _fields_of(value: Any) -> dict[str, Any]:
    """A value as the encoder meets it, so that no second tree of all values is ever built."""
    if isinstance(value, FieldChange):
        return _field_body(value)
    names, read = _READERS[type(value)]
    return dict(zip(names, read(value), strict=True))


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


def _reader(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], Any]]:
    names = tuple(field.name for field in fields(kind))
    return names, attrgetter(*names)


_READERS = {
    kind: _reader(kind)
    for kind in (
        Change,
        Deferred,
        Held,
        Kept,
        Override,
        Permissions,
        Predicate,
        Scope,
        Settled,
        Impact,
        Step,
    )
}

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
    """The text, one change or the like at a time: that of a great plan is never in memory as a whole."""
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


def _plan(whole: Mapping[str, Any]) -> Plan:
    return Plan(
        environment_fingerprint=_fingerprint(whole),
        environment_name=_text(whole["environment_name"]),
        ledger_id=_text(whole["ledger_id"]),
        epoch=_whole(whole["epoch"]),
        changes=_many(_change, whole["changes"]),
        held=_many(_held, whole["held"]),
        settled=_many(
            lambda one: Settled(_key(one["key"]), _text(one["state"]), _text(one["detail"])),
            whole["settled"],
        ),
        progressing=_many(_key, whole["progressing"]),
        predicates=_many(_predicate, whole["predicates"]),
        rules=None if whole["rules"] is None else Rules.of(whole["rules"]),
        commit=_text(whole["commit"]),
        tree_digest=_text(whole["tree_digest"]),
        digest=_text(whole["digest"]),
        format_version=_whole(whole["format_version"]),
        annex=dict(whole["annex"]),
        warnings=_many(_text, whole["warnings"]),
        deferred=_many(
            lambda one: Deferred(_change(one["change"]), _text(one["why"])),
            whole.get("deferred", []),
        ),
        scope=_scope(whole.get("scope", _NO_SCOPE)),
        overrides=_many(_override, whole.get("overrides", [])),
        kept=None if whole.get("kept") is None else _kept(whole["kept"]),
        recovering=bool(whole.get("recovering", False)),
        salt=_text(whole.get("salt", "")),
        destroys=bool(whole.get("destroys", False)),
    )


def _fingerprint(whole: Mapping[str, Any]) -> str:
    # Format 1 had the uid itself.
    if "environment_uid" in whole:
        return fingerprint(_text(whole["environment_uid"]))
    return _text(whole["environment_fingerprint"])


def _change(body: Mapping[str, Any]) -> Change:
    return Change(
        key=_key(body["key"]),
        action=Action(body["action"]),
        reasons=_many(Reason, body["reasons"]),
        type=_text(body["type"]),
        fields=_many(_field, body["fields"]),
        steps=_many(_step, body["steps"]),
        uid=_text(body["uid"]),
        generation=_whole(body["generation"]),
        parent=_text(body["parent"]),
        element=_text(body["element"]),
        replaces=_text(body["replaces"]),
        destructive=bool(body["destructive"]),
        at_stake=_text(body["at_stake"]),
        # Format 1 had none of these; an apply that was interrupted before an upgrade is gone on with.
        moved_from=_text(body.get("moved_from", "")),
        cost_before=_perhaps_whole(body.get("cost_before")),
        cost_after=_perhaps_whole(body.get("cost_after")),
        stake=None if body.get("stake") is None else _impact(body["stake"]),
        before=_perhaps_document(body.get("before")),
        after=_perhaps_document(body.get("after")),
    )


_NO_SCOPE: Mapping[str, list[str]] = {"targets": [], "excludes": [], "replaces": []}


def _impact(body: Mapping[str, Any]) -> Impact:
    return Impact(_many(_text, body["runs"]), _whole(body["jobs"]), _whole(body["gpus"]))


def _kept(body: Mapping[str, Any]) -> Kept:
    allowed = body["permissions"]
    return Kept(
        plan_id=_text(body["plan_id"]),
        made_at_ms=_whole(body["made_at_ms"]),
        who=_text(body["who"]),
        permissions=Permissions(
            allow_destroy=bool(allowed["allow_destroy"]),
            allow_restart=bool(allowed["allow_restart"]),
            allow_deletes=_perhaps_whole(allowed["allow_deletes"]),
            destroy=bool(allowed["destroy"]),
        ),
    )


def _scope(body: Mapping[str, Any]) -> Scope:
    return Scope(
        _many(_text, body["targets"]),
        _many(_text, body["excludes"]),
        _many(_text, body["replaces"]),
    )


def _override(body: Mapping[str, Any]) -> Override:
    return Override(
        number=_whole(body["number"]),
        kind=OverrideKind(body["kind"]),
        target=_text(body["target"]),
        reason=_text(body["reason"]),
        who=_text(body["who"]),
        since_ms=_whole(body["since_ms"]),
        until_ms=_perhaps_whole(body["until_ms"]),
    )


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


def _step(body: Mapping[str, Any]) -> Step:
    return Step(
        key=_text(body["key"]),
        verb=_text(body["verb"]),
        resource=_key(body["resource"]),
        needs=_many(_text, body["needs"]),
        arguments=dict(body["arguments"]),
    )


def _held(body: Mapping[str, Any]) -> Held:
    return Held(
        _change(body["change"]),
        HeldBy(body["by"]),
        _text(body["detail"]),
        _text(body["cure"]),
        {_text(uid): _text(name) for uid, name in body.get("awaited", {}).items()},
    )


def _predicate(body: Mapping[str, Any]) -> Predicate:
    resource = body["resource"]
    return Predicate(
        _text(body["claim"]), None if resource is None else _key(resource), _text(body["value"])
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


def _perhaps_whole(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _perhaps_document(value: Any) -> Mapping[str, Any] | None:
    return None if value is None else dict(value)


# What a recorded plan holds back, read without the rest of it.
# The plan of ten thousand new runs is 20 MB of JSON, and a reader of an environment's state
# waits for the answer. `plan.serialize.load` reads a plan that is to be carried out, and checks its digest.

# Keys are sorted. No document can have the first three of a plan side by side, with such values.
_HELD = re.compile(rb'"format":"fleetform-plan","format_version":\d+,"held":')
_DESTROYS = re.compile(rb'"destroys":true,"digest":"[0-9a-f]*","environment_fingerprint":"')
_SCOPE = b'"scope":{"excludes":['


def recorded_holds(body: bytes) -> tuple[Held, ...] | None:
    """
    Read the changes that a plan as `plan.serialize.dump` wrote it holds back.

    None where it says nothing of the whole configuration: it is of a part, or for `destroy`.
    """
    if (found := _HELD.search(body)) is None or _DESTROYS.search(body):
        return None
    # The last one: a document before it may have a key of that name.
    place = body.rfind(_SCOPE)
    scope = _value(body, place + len(b'"scope":')) if place >= 0 else {}
    if scope.get("targets") or scope.get("excludes"):
        return None
    return held_of(_value(body, found.end()))


def _value(body: bytes, at: int) -> Any:
    value, _end = json.JSONDecoder().raw_decode(body[at:].decode("utf-8", "surrogatepass"))
    return value

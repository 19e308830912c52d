"""
A plan from a file under the same invariants, although nobody reads its tree again.

What it wants is what its steps carry, also of what it holds and leaves for another; all else stays
as it is. So every check holds that the ledger can answer: protection, budget, what was permitted
when it was made, finished runs, the rules that were applied last. That its documents are those of
some commit is the digest's to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any

from fleetform.checker.check import check
from fleetform.checker.context import Violation
from fleetform.checker.names import MOVE, renamed, renamed_rows
from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import Change, FieldChange, Plan, Reason, Step
from fleetform.spec.canonical import plain_json
from fleetform.spec.desired import Declared, Desired, Environment, ResourceKey, Rules
from fleetform.spec.findings import Place
from fleetform.spec.references import Catalogue, Entry, Upstream, mentioned, required

__all__ = ["check_saved", "text_of"]


_KINDS = frozenset({"fleet", "queue", "volume", "run"})


def check_saved(plan: Plan, live: Live) -> tuple[Violation, ...]:
    """
    Read a plan of a file against what is there now.

    Returns:
        As `check`; what has come to be since it was made may have made it wrong, so a violation
        is no fault of ours here.
    """
    assert plan.kept is not None, "the plan is not from a file"
    if not plan.ledger_id:
        # It was made before there was a ledger; that its resources are absent says the rest.
        live = replace(live, ledger_id="", epoch=plan.epoch)
    return check(plan, _desired(plan, live), live, plan.kept.permissions, plan.scope)


def _desired(plan: Plan, live: Live) -> Desired:
    """The tree that the plan moves the ledger to."""
    resources = {
        key: _as_it_is(row)
        for key, row in renamed_rows(plan, live).items()
        if not row.archived and key.kind in _KINDS
    }
    # What is held or left is wanted too: a target brings along what it needs by way of that.
    left = (*(one.change for one in plan.held), *(one.change for one in plan.deferred))
    for change in (*plan.changes, *left):
        # What is only renamed is there as it was.
        steps = [step for step in change.steps if step.verb != MOVE]
        for name in {change.key.name, change.replaces} if steps else ():
            resources.pop(ResourceKey(change.key.kind, name), None)
        for step in steps:
            if step.arguments.get("document") is not None:
                resources[step.resource] = _carried(step, change)
    rules = [step.arguments["rules"] for step in plan.steps if step.verb == "rules.set"]
    if plan.scope.targets:
        resources = _waiting(resources)
    return Desired(
        environment=Environment(
            plan.environment_name,
            live.environment_uid,
            Rules.of(rules[0]) if rules else live.rules or Rules(),
        ),
        resources=dict(sorted(resources.items())),
        commit=plan.commit,
        digest=plan.tree_digest,
        moved=tuple(renamed(plan).items()),
        removed=tuple(one.key for one in plan.changes if Reason.LET_GO in one.reasons),
        imports=tuple(one.key for one in plan.changes if Reason.FOUND in one.reasons),
    )


def _as_it_is(row: LiveResource) -> Declared:
    document = json.loads(row.document) if row.document else {}
    return Declared(
        key=row.key,
        type=row.type,
        document=document,
        digest=row.digest,
        execution_digest=row.execution_digest,
        own_digest=row.own_digest,
        parent=row.parent,
        element=row.element,
        references=_references(row.key, document),
    )


def _carried(step: Step, change: Change) -> Declared:
    said = step.arguments
    return Declared(
        key=step.resource,
        type=said.get("type", change.type),
        document=said["document"],
        digest=said["digest"],
        execution_digest=said["execution_digest"],
        own_digest=said["own_digest"],
        parent=said.get("parent", ""),
        element=said.get("element", ""),
        references=_references(step.resource, said["document"]),
    )


def _references(key: ResourceKey, document: Mapping[str, Any]) -> tuple[ResourceKey, ...]:
    # Secrets are no resources that a plan changes.
    return required(mentioned(document, key.kind, has_marks=False))


def _waiting(resources: Mapping[ResourceKey, Declared]) -> dict[ResourceKey, Declared]:
    """The same, with the runs that each run waits for; of a sweep, those that it has then."""
    elements: dict[ResourceKey, set[str]] = {}
    for key, one in resources.items():
        if one.parent:
            elements.setdefault(ResourceKey(key.kind, one.parent), set()).add(one.element)
    sweeps = (
        Entry(number, key, "", Place(""), elements=frozenset(own))
        for number, (key, own) in enumerate(elements.items())
    )
    upstream = Upstream(Catalogue.of(sweeps))
    return {
        key: replace(one, upstream=upstream.of(one.document, one.element))
        if "depends_on" in one.document
        else one
        for key, one in resources.items()
    }


# What a plan says, as the text that its digest is of, written anew.
# Nothing of it comes from `plan`: the form of each kind of value is made of the fields that it has, so
# that a field which the planner's own text leaves out makes another digest. Documents are written by
# the standard library.

_UNSEALED = frozenset({"annex", "digest"})

_Form = tuple[str, Callable[[Any], tuple[Any, ...]]]


def text_of(plan: Plan) -> Iterator[str]:
    """The text in parts, none of which is longer than one change."""
    said = {one.name: getattr(plan, one.name) for one in fields(plan) if one.name not in _UNSEALED}
    said["format"] = "fleetform-plan"
    before = "{"
    for name in sorted(said):
        yield f'{before}"{name}":'
        before = ","
        if isinstance(said[name], tuple):
            yield "["
            for number, one in enumerate(said[name]):
                yield f",{_text(one)}" if number else _text(one)
            yield "]"
        else:
            yield _text(said[name])
    yield "}"


def _text(value: Any) -> str:
    return _WRITERS[type(value)](value)


class _Writers(dict[type, Callable[[Any], str]]):
    """How values of a type are written, found out when the first of them is met."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        if issubclass(kind, str):
            write: Callable[[Any], str] = encode_basestring  # Actions and reasons are texts.
        elif is_dataclass(kind):
            write = _written_by(_form(kind))
        else:
            # Documents, and whatever else JSON has: what it has not is refused there.
            write = plain_json
        self[kind] = write
        return write


def _form(kind: type) -> _Form:
    """A text with a place for each field, by name, and what reads the fields in that order."""
    names = sorted(one.name for one in fields(kind))
    places = ",".join([f'"{name}":%s' for name in names])
    read = attrgetter(*names)
    return f"{{{places}}}", read if len(names) > 1 else lambda value: (read(value),)


def _written_by(form: _Form) -> Callable[[Any], str]:
    text, read = form
    return lambda value: text % tuple([_WRITERS[type(one)](one) for one in read(value)])


def _field(one: FieldChange) -> str:
    sides = [one.after] if one.after_set else []
    if one.before_set:
        sides.append(one.before)
    return _field_form(*_REST(one)) % tuple([_WRITERS[type(side)](side) for side in sides])


_REST = attrgetter(
    "after_set", "before_set", "field_class", "forces", "path", "sensitive", "unknown"
)


@lru_cache(maxsize=1024)
def _field_form(
    after_set: bool,
    before_set: bool,
    field_class: str,
    forces: bool,
    path: str,
    sensitive: bool,
    unknown: bool,
) -> str:
    """
    All but the values of a field: what a hundred thousand changes share.

    A side that is not set is not said, and what nearly no field is, neither.
    """
    sides = {"after": after_set, "before": before_set}
    said = {"class": field_class, "forces": forces, "path": path}
    rare = {"sensitive": sensitive, "unknown": unknown}
    rest = said | {name: True for name, is_said in rare.items() if is_said}
    places = [f'"{name}":%s' for name, is_set in sides.items() if is_set]
    return f"{{{','.join([*places, plain_json(rest)[1:-1].replace('%', '%%')])}}}"


def _key(key: ResourceKey) -> str:
    return f"[{encode_basestring(key.kind)},{encode_basestring(key.name)}]"


def _listed(values: tuple[Any, ...]) -> str:
    if not values:
        return "[]"
    return f"[{','.join([_WRITERS[type(one)](one) for one in values])}]"


# Looked up by the interpreter itself: most fields of a change are one of these.
_CONSTANTS = {None: "null", True: "true", False: "false"}

_KNOWN: dict[type, Callable[[Any], str]] = {
    bool: _CONSTANTS.__getitem__,
    type(None): _CONSTANTS.__getitem__,
    FieldChange: _field,
    ResourceKey: _key,
    Rules: lambda rules: plain_json(rules.document()),
    str: encode_basestring,
    tuple: _listed,
}

_WRITERS = _Writers(_KNOWN)

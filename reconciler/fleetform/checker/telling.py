"""
That a plan tells what people and machines rely on: the rules that judged it, what is at stake, and
a digest that is its own.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from fleetform.checker.invariant import Invariant, Violation
from fleetform.checker.reading import Reading, at_work
from fleetform.model.plan import FieldChange
from fleetform.spec.desired import Rules


def check_rules_applied_last(reading: Reading) -> Iterator[Violation]:
    """The rules that it says it was judged by are those last applied, not those it brings."""
    # One of a file says by a predicate which rules it needs, where it needs any.
    if reading.plan.kept is None and reading.plan.rules != reading.rules:
        yield Violation(
            Invariant.RULES_APPLIED_LAST,
            f"it was judged by {reading.plan.rules}, and {reading.rules} were applied last",
        )


def check_stake_told(reading: Reading) -> Iterator[Violation]:
    """What destroys says in words what is lost, and names the runs whose work it ends."""
    for change in reading.plan.changes:
        if change.destructive and not change.at_stake:
            yield Violation(Invariant.STAKE_TOLD, f"{change.key} does not say what would be lost")
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "run.stop" or row is None or not at_work(row):
            continue
        named = change.stake.runs if change.stake is not None else ()
        if step.resource.name not in named:
            yield Violation(
                Invariant.STAKE_TOLD, f"{change.key} would end {step.resource} and does not name it"
            )


def check_digest_right(reading: Reading) -> Iterator[Violation]:
    """Whoever approves a digest approves this plan: it is made anew from what the plan says."""
    plan = reading.plan
    body = {
        one.name: getattr(plan, one.name)
        for one in fields(plan)
        if one.name not in {"annex", "digest"}
    }
    text = _ENCODER.encode({"format": "fleetform-plan", **body})
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if found != plan.digest:
        yield Violation(
            Invariant.DIGEST_RIGHT, f"its digest is {plan.digest[:12]}, and comes to {found[:12]}"
        )


def _plain(value: Any) -> Any:
    """JSON values of one value of a plan."""
    if isinstance(value, Rules):
        return value.document()
    if isinstance(value, enum.Enum):
        return value.value
    names, read = _reader(type(value))  # type: ignore[arg-type]  # A class is hashable.
    said = dict(zip(names, read(value), strict=True))
    if isinstance(value, FieldChange):
        said["class"] = said.pop("field_class")
        if not said.pop("before_set"):
            del said["before"]
        if not said.pop("after_set"):
            del said["after"]
        for name in ("sensitive", "unknown"):
            if not said[name]:
                del said[name]
    return said


@functools.cache
def _reader(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The names of a value's fields, and what reads all of them at once."""
    assert is_dataclass(kind), kind
    names = tuple(one.name for one in fields(kind))
    read = attrgetter(*names)
    return names, (read if len(names) > 1 else lambda value: (read(value),))


_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
    default=_plain,
)

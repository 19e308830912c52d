"""
Which paths `ignore:` and `initial:` may name: fields that there are, and whose value may differ.

A path is dotted and goes through mappings only; `*` stands for any text within one step, behind the
first: `env.AWS_*`. A list is overlooked as a whole.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Model, written_fields
from fleetform.spec.names import nearest
from fleetform.spec.quantities.ranges import shown

# What makes it this resource, what it stands on, and what is said about other fields.
_DECISIVE: Mapping[str, str] = {
    **dict.fromkeys(("type", "name"), "identifies the resource"),
    **dict.fromkeys(("array", "matrix", "key"), "decides which elements exist"),
    **dict.fromkeys(
        ("fleet", "fleets", "volumes", "depends_on", "instances", "queue", "backend", "backends"),
        "names what the resource depends on",
    ),
    **dict.fromkeys(("ignore", "initial"), "lists the ignored fields"),
    "protect": "decides which changes are permitted",
}


def problems(
    model: type[Model], ignore: Sequence[str], initial: Sequence[str]
) -> Iterator[Problem]:
    """Everything that is wrong with the paths of a document."""
    seen: dict[str, str] = {}
    for field, paths in (("ignore", ignore), ("initial", initial)):
        for number, path in enumerate(paths):
            problem = _problem(model, (field, number), path)
            if problem is not None:
                yield problem
                continue
            other = next((one for one in seen if _overlap(one, path)), None)
            if other is not None and (seen[other] != field or other == path):
                yield _twice((field, number), path, other, seen[other], field)
            seen.setdefault(path, field)


def _problem(model: type[Model], where: tuple[str | int, ...], path: str) -> Problem | None:
    steps = path.split(".")
    if steps[0] in _DECISIVE:
        return Problem(
            "contradiction",
            where,
            f"`{steps[0]}` {_DECISIVE[steps[0]]}, so its changes cannot be ignored.",
            "Remove the path.",
        )
    annotation: Any = model
    for number, step in enumerate(steps):
        below = _below(annotation, step, is_first=number == 0)
        if below is None:
            return _unknown(annotation, where, steps, number)
        annotation = below
    return None


def _below(annotation: Any, step: str, *, is_first: bool) -> Any:
    """What a step leads to; None where there is no such thing."""
    for part in _parts(annotation):
        if isinstance(part, type) and issubclass(part, Model):
            known = written_fields(part)
            names = [name for name in known if fnmatchcase(name, step)]
            if step in known or (names and not is_first):
                return known[names[0]].annotation
        elif typing.get_origin(part) in {dict, Mapping} and step:
            return typing.get_args(part)[1]
    return None


def _parts(annotation: Any) -> Iterator[Any]:
    """A mapping or a model where the annotation may be one; lists have no steps."""
    origin = typing.get_origin(annotation)
    if origin in {dict, Mapping} or (isinstance(annotation, type) and origin is None):
        yield annotation
    elif origin not in {list, tuple, set, frozenset, Sequence}:
        for argument in typing.get_args(annotation):
            yield from _parts(argument)


def _unknown(
    annotation: Any, where: tuple[str | int, ...], steps: Sequence[str], number: int
) -> Problem:
    above, step = ".".join(steps[:number]), steps[number]
    if number == 0 and "*" in step:
        return Problem(
            "bad-value",
            where,
            f"{shown('.'.join(steps))} would ignore the whole document.",
            "Name a field first: `env.*`.",
        )
    known = [
        name
        for part in _parts(annotation)
        if isinstance(part, type) and issubclass(part, Model)
        for name in written_fields(part)
    ]
    close = nearest(step, known)
    lead = f"{above}." if above else ""
    detail = (
        f"There is no field {shown('.'.join(steps))}."
        if known
        else f"`{above}` is one value, and {shown(step)} is no part of it."
    )
    otherwise = f"Write `{above}`." if above and not known else "`fleetform explain` lists fields."
    advice = f"Did you mean `{lead}{close}`?" if close else otherwise
    return Problem("unknown-field", where, detail, advice)


def _overlap(one: str, two: str) -> bool:
    """Whether one of the two is the other or lies in it."""
    return all(a == b for a, b in zip(one.split("."), two.split("."), strict=False))


def _twice(where: tuple[str | int, ...], path: str, other: str, said: str, field: str) -> Problem:
    if said == field:
        return Problem("said-twice", where, f"`{path}` is named twice.", "Keep one of the two.")
    same = "is" if other == path else f"overlaps with `{other}`, which is"
    return Problem(
        "contradiction",
        where,
        f"`{path}` {same} in `{said}` already: a field is either ignored always, or set when the resource is created.",
        "Keep it in one of the two.",
    )

"""
A validation error in our own words: what is wrong here, and what to write instead.

pydantic says what a value is not; people need to know what to do. So its errors are taken for
their kind and place only. What it is told by our own validators is passed on as it stands.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fleetform.spec import fields
from fleetform.spec.findings import SUMMARIES, Problem
from fleetform.spec.kinds import BACKEND_TYPES
from fleetform.spec.kinds.base import FORM, WITHIN, Model, models_in, written_fields
from fleetform.spec.kinds.synonyms import fields_by_word, meant_value
from fleetform.spec.names import bare_word, nearest
from fleetform.spec.quantities.ranges import PartError, shown, unfit
from fleetform.spec.tree.budget import PROBLEMS_MAX

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]

# Errors that say no more than that another type was wanted, and how people call that type.
_TYPES: Mapping[str, str] = {
    "string_type": "text",
    "bool_type": "`true` or `false`",
    "int_type": "a whole number",
    "float_type": "a number",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}


def complain(error: ValidationError, model: type[Model], type_name: str) -> Iterator[Problem]:
    """Each error of a document as a problem, in the order of the document's fields."""
    # A list of a hundred thousand wrong entries is one mistake, and each entry is looked at here.
    errors = error.errors(include_url=False)[:PROBLEMS_MAX]
    for details in errors:
        details["loc"] = tuple(step for step in details["loc"] if not str(step).startswith(FORM))
    misspelt = set(_misspelt(errors, model, type_name))
    for details in errors:
        if details["type"] == WITHIN:
            inner = details["ctx"]
            for problem in complain(inner["error"], inner["model"], inner["type"]):
                yield problem.below(*details["loc"])
        elif not _is_reported(details, errors, misspelt):
            yield _without_secret(_problem(details, model, type_name), details, type_name)


def _without_secret(problem: Problem, details: ErrorDetails, type_name: str) -> Problem:
    """The problem, without the value that it quotes if that is a secret."""
    path = problem.path
    for length in range(1, len(path) + 1):
        dotted = ".".join(step for step in path[:length] if isinstance(step, str))
        if fields.is_sensitive(type_name, dotted):
            name, wanted = path[length - 1], _TYPES.get(details["type"])
            detail = f"`{name}` is not {wanted}." if wanted else f"`{name}`: {problem.detail}"
            # Not at the field: a finding quotes its line.
            return Problem(problem.code, path[: length - 1], detail, problem.advice, at_key=True)
    return problem


def _is_reported(
    details: ErrorDetails, errors: Sequence[ErrorDetails], misspelt: set[Path]
) -> bool:
    """Whether another error is the same mistake."""
    if details["type"] == "missing":
        return details["loc"] in misspelt
    # A list whose entries are wrong is told to be too short as well.
    return details["type"] == "too_short" and _has_error_below(details["loc"], errors)


def _misspelt(errors: Sequence[ErrorDetails], model: type[Model], type_name: str) -> Iterator[Path]:
    """The fields that are meant by those that do not exist."""
    for details in errors:
        if details["type"] == "extra_forbidden":
            *above, last = details["loc"]
            meant = _close(tuple(above), str(last), model, type_name)
            if meant:
                yield (*above, *meant.split("."))


def _has_error_below(path: Path, errors: Sequence[ErrorDetails]) -> bool:
    return any(
        len(other["loc"]) > len(path) and other["loc"][: len(path)] == path for other in errors
    )


def _problem(details: ErrorDetails, model: type[Model], type_name: str) -> Problem:
    kind = details["type"]
    path = tuple(details["loc"])
    context = details.get("ctx") or {}
    if kind == "extra_forbidden":
        return _unknown_field(path, model, type_name)
    if kind == "missing":
        return _missing_field(path, model)
    if kind == "value_error":
        # An amount may be written as a mapping, of which one part is wrong.
        below = context["error"].path if isinstance(context["error"], PartError) else ()
        return Problem("bad-value", (*path, *below), str(context["error"]))
    if kind in _TYPES:
        return Problem("wrong-type", path, str(unfit(details["input"], _TYPES[kind])))
    if kind == "literal_error":
        return _not_a_choice(path, details["input"], _choices(model, path))
    if kind in SUMMARIES and "detail" in context:
        return Problem(kind, path, context["detail"], context["advice"])
    return Problem("bad-value", path, _bound(kind, context, details))


def _bound(kind: str, context: Mapping[str, Any], details: ErrorDetails) -> str:
    """A value on the wrong side of a bound, and whatever else pydantic may think of."""
    value = details["input"]
    sentences: dict[str, Callable[[], str]] = {
        "greater_than_equal": lambda: f"{shown(value)} is too small; the least is {context['ge']}.",
        "less_than_equal": lambda: f"{shown(value)} is too large; the most is {context['le']}.",
        "too_short": lambda: "The list is empty; remove the field, or add an entry.",
        "string_too_short": lambda: "The text is empty; remove the field, or write a value.",
        "string_too_long": lambda: (
            f"The text is too long; it may have {context['max_length']} characters."
        ),
    }
    sentence = sentences.get(kind)
    return sentence() if sentence else f"{shown(value)} cannot be used here: {details['msg']}."


def _unknown_field(path: Path, model: type[Model], type_name: str) -> Problem:
    *above, last = path
    wrong = str(last)
    part = _part(above, type_name)
    owner = _model_at(model, above)
    refusal = owner.refused.get(wrong.lower())
    if refusal is not None:
        code, detail, advice = refusal
        # Not at the field: a finding quotes its line, and that may be what nobody should see.
        return Problem(code, tuple(above), f"{shown(wrong)}: {detail}", advice, at_key=True)
    known = list(written_fields(owner))
    names = [step for step in above if isinstance(step, str)]
    where = f"`{names[-1]}`" if names else _noun(type_name)
    close = _close(above, wrong, model, type_name)
    if close:
        advice = f"Did you mean `{close}`?"
    elif len(known) > _LISTED_MAX:
        advice = f"`fleetform explain {part}` shows its fields."
    else:
        advice = "Its fields: " + ", ".join(f"`{name}`" for name in sorted(known)) + "."
    return Problem(
        "unknown-field",
        path,
        f"{where.capitalize()} has no field {shown(wrong)}.",
        advice,
        at_key=True,
    )


def meant_field(name: str, model: type[Model], type_name: str) -> str | None:
    """The field of a document that is meant by `name`, which is none; dotted where it is below."""
    return None if name in written_fields(model) else _close((), name, model, type_name)


def _close(
    above: Sequence[str | int], wrong: str, model: type[Model], type_name: str
) -> str | None:
    known = list(written_fields(_model_at(model, above)))
    return _meant(_part(above, type_name), wrong) or nearest(wrong, known)


def _part(above: Sequence[str | int], type_name: str) -> str:
    return ".".join([type_name, *(step for step in above if isinstance(step, str))])


def _noun(type_name: str) -> str:
    noun = f"{type_name} backend" if type_name in BACKEND_TYPES else type_name
    return f"an {noun}" if noun[0] in "aeiou" and noun != "user" else f"a {noun}"


# More than this is looked through and not read.
_LISTED_MAX = 12


def _meant(part: str, wrong: str) -> str | None:
    """What people mean by a word, as others spell it: `restart_policy`, `restartPolicy`."""
    bare = bare_word(wrong)
    return next(
        (
            field
            for word, field in fields_by_word().get(part, {}).items()
            if bare_word(word) == bare
        ),
        None,
    )


# What to do about the fields without which a document means nothing.
_MISSING: Mapping[tuple[str, str], str] = {
    ("Task", "commands"): "Add `commands:` with a list of shell commands.",
    (
        "EnvironmentDocument",
        "uid",
    ): "Run `fleetform init`, which writes one; it is committed and never changed.",
    ("Checkpoint", "lead"): "Add `lead: 5m`: how long before the end the signal is sent.",
    ("Checkpoint", "signal"): "Add `signal: USR1`.",
}


def _missing_field(path: Path, model: type[Model]) -> Problem:
    *above, last = path
    owner = _model_at(model, above)
    return Problem(
        "missing-field",
        tuple(above),
        f"`{last}` is missing.",
        _MISSING.get((owner.__name__, str(last)), f"Add `{last}:`."),
        at_key=True,
    )


def _not_a_choice(path: Path, value: Any, choices: Sequence[str]) -> Problem:
    listed = ", ".join(f"`{choice}`" for choice in choices)
    close = None
    if isinstance(value, str):
        field = next((step for step in reversed(path) if isinstance(step, str)), "")
        close = meant_value(field, value, choices) or nearest(value, choices)
    advice = f"Did you mean `{close}`? " if close else ""
    return Problem(
        "bad-value",
        path,
        f"{shown(value)} is not a valid choice.",
        f"{advice}Choose one of {listed}.",
    )


def _choices(model: type[Model], path: Path) -> list[str]:
    annotation = _annotation_at(model, path)
    # A value may be allowed for a run and for each of its elements: two types, one choice.
    return list(dict.fromkeys(value for value in _leaves(annotation) if isinstance(value, str)))


def _leaves(annotation: Any) -> Iterator[Any]:
    """Everything inside an annotation: the choices of a Literal, the classes of a union."""
    arguments = typing.get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from _leaves(argument)


def _model_at(model: type[Model], path: Sequence[str | int]) -> type[Model]:
    """The model that the mapping at `path` is read by, or the nearest one above it."""
    for length in range(len(path), -1, -1):
        found = next(models_in(_annotation_at(model, path[:length])), None)
        if found is not None:
            return found
    return model


def _annotation_at(model: type[Model], path: Sequence[str | int]) -> Any:
    annotation: Any = model
    for step in path:
        if isinstance(step, int):
            continue
        inner = next(models_in(annotation), None)
        field = written_fields(inner).get(str(step)) if inner else None
        if field is None:
            return None
        annotation = field.annotation
    return annotation

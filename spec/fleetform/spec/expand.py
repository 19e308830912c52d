"""
Arrays and sweeps into elements.

An element's name is what it computes, never where it stands: `sweep[batch=32,lr=0.1]`. So a
value more makes elements more and changes none, and neither the order of values nor that of
parameters means anything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fleetform.spec.bounds import ELEMENTS_MAX
from fleetform.spec.findings import Problem
from fleetform.spec.names import element_name, indexed_name, parse_address, scalar_text
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.secrecy import names_secret, sealed_for_name

if TYPE_CHECKING:
    from fleetform.spec.kinds.run import Run

Value = TypeVar("Value", int, str)

# With more, the product is over the bound of elements unless nearly all have one value, and
# that is no parameter.
PARAMETERS_MAX = 32
# Every name is kept, printed and sent. A hundred thousand of three hundred characters.
VALUE_LENGTH_MAX = 1000
NAMES_LENGTH_MAX = 2**25


@dataclass(frozen=True, slots=True)
class Element:
    """
    One run of a document. `identity` is what stands in the brackets, empty for a task that is
    neither array nor sweep.
    """

    name: str
    identity: str = ""
    index: int | None = None
    matrix: Mapping[str, Any] | None = None


def expand(run: Run, environment_uid: str = "") -> tuple[list[Element], list[Problem]]:
    """
    The runs that a document declares, and the problems of names that are not distinct.

    `environment_uid` is the key by which secrets among the parameters are sealed in names.
    """
    from fleetform.spec.kinds.task import Task

    if not isinstance(run, Task):
        return [Element(run.name)], []
    if run.array is not None:
        return [
            Element(indexed_name(run.name, index), str(index), index=index)
            for index in run.array.indices
        ], []
    if run.matrix is None:
        return [Element(run.name)], []
    problem = _oversized(run.matrix)
    if problem is not None:
        return [], [problem]
    repeated = list(_repeated_values(run.matrix))
    if repeated:
        return [], repeated
    return _combinations(run.name, run.matrix, run.key, environment_uid)


def values_by_element(
    field: str, values: Mapping[str, Value], run: Run, elements: Sequence[Element]
) -> tuple[dict[str, list[Value]], list[Problem]]:
    """
    Find the elements that a field by element names, and the entries that name none.

    A part of the parameters means all elements that have it, and indices may be spans, as in an
    address that is typed. An element has the values of all entries that name it, in their order.
    """
    found: dict[str, list[Value]] = {}
    wrong: list[Problem] = []
    by_identity = {element.identity: element for element in elements if element.identity}
    for text, value in values.items():
        meant = [by_identity[text]] if text in by_identity else _selected(text, run, elements)
        if not meant and elements:
            wrong.append(_no_element(field, text, value, run))
        for element in meant:
            found.setdefault(element.name, []).append(value)
    return found, wrong


def _selected(text: str, run: Run, elements: Sequence[Element]) -> list[Element]:
    try:
        address = parse_address(f"{run.name}[{text}]")
    except ValueError:
        return []
    return [one for one in elements if one.identity and address.selects("run", one.name)]


def _no_element(field: str, text: str, value: int | str, run: Run) -> Problem:
    return Problem(
        "bad-value",
        (field, text),
        f"{shown(text)} names no element of `{run.name}`.",
        f"Write the text in the brackets of an element: `{{lr=0.1: {value}}}`, `{{3: {value}}}`;"
        f" `{field}: {value}` is for the whole.",
        at_key=True,
    )


def _combinations(
    name: str,
    matrix: Mapping[str, Sequence[Any]],
    key: Sequence[str] | None,
    environment_uid: str,
) -> tuple[list[Element], list[Problem]]:
    parameters = sorted(matrix)
    chosen = [parameter for parameter in parameters if key is None or parameter in key]
    secrets = [parameter for parameter in chosen if names_secret(parameter)]
    elements: dict[str, Element] = {}
    for values in itertools.product(*(matrix[parameter] for parameter in parameters)):
        combination = dict(zip(parameters, values, strict=True))
        shown_values = {parameter: combination[parameter] for parameter in chosen}
        for parameter in secrets:
            text = scalar_text(combination[parameter])
            shown_values[parameter] = sealed_for_name(environment_uid, text)
        full = element_name(name, shown_values)
        identity = full[len(name) + 1 : -1]
        if full in elements:
            return [], [_not_distinct(identity)]
        elements[full] = Element(full, identity, matrix=combination)
    return list(elements.values()), []


def _repeated_values(matrix: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    for parameter, values in matrix.items():
        seen: set[str] = set()
        for number, value in enumerate(values):
            text = scalar_text(value)
            if text in seen:
                yield Problem(
                    "said-twice",
                    ("matrix", parameter, number),
                    f"`{parameter}` has the value `{text}` twice; the two elements would have one name.",
                    "Remove one of the two.",
                )
            seen.add(text)


def _oversized(matrix: Mapping[str, Sequence[Any]]) -> Problem | None:
    """Why there are too many combinations, or names of them too long, to be made at all."""
    if len(matrix) > PARAMETERS_MAX:
        return _too_many(f"There are {len(matrix)} parameters; a sweep may have {PARAMETERS_MAX}.")
    count = math.prod(len(values) for values in matrix.values())
    if count > ELEMENTS_MAX:
        return _too_many(
            f"This declares {count} elements; one document may declare {ELEMENTS_MAX}."
        )
    lengths = {name: [len(scalar_text(value)) for value in matrix[name]] for name in matrix}
    for parameter, of_values in lengths.items():
        if max(of_values) > VALUE_LENGTH_MAX:
            return _long(parameter, of_values.index(max(of_values)))
    longest = sum(len(name) + max(of_values) for name, of_values in lengths.items())
    if count * longest > NAMES_LENGTH_MAX:
        return _too_many(
            f"This declares {count} elements, with names of up to {longest} characters."
        )
    return None


def _too_many(detail: str) -> Problem:
    return Problem(
        "too-many-elements",
        ("matrix",),
        detail,
        "Let each element do more, or declare several documents.",
        at_key=True,
    )


def _long(parameter: str, number: int) -> Problem:
    return Problem(
        "bad-value",
        ("matrix", parameter, number),
        f"The value is a part of its element's name and has more than {VALUE_LENGTH_MAX} characters.",
        "Give it a short name here, and let the command look up the long text by that name.",
    )


def _not_distinct(identity: str) -> Problem:
    return Problem(
        "said-twice",
        ("key",),
        f"Several elements would be called `{identity}`: `key` leaves out a parameter with several values.",
        "Add to `key` each parameter that has more than one value.",
    )

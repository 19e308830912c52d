"""
Which removed element of a sweep an added one takes the place of.

Changing one value of a matrix removes elements and adds as many; shown as pairs, the plan says
what changed and not only what came and went. Nearest are the two that share most parameters;
among equals the order of names decides, so that the same trees give the same pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from fleetform.model.live import LiveResource
from fleetform.spec.desired import Declared

PARAMETERS_MAX = 6
"""
Parameters up to which every subset is looked at: 64 passes over the elements of one sweep.

Above it only subsets that leave out one or two are, which is what an edit changes.
"""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs of an added and the removed element that it replaces, and what is left of both."""

    pairs: tuple[tuple[Declared, LiveResource], ...]
    added: tuple[Declared, ...]
    removed: tuple[LiveResource, ...]


@dataclass(slots=True)
class _Sweep:
    added: list[Declared]
    removed: list[LiveResource]


def pair_elements(added: Iterable[Declared], removed: Iterable[LiveResource]) -> Pairing:
    """
    Pair within each sweep or array.

    A protected element is never paired: it stays, and must not keep its successor from running.
    """
    sweeps: dict[str, _Sweep] = {}
    single_added: list[Declared] = []
    single_removed: list[LiveResource] = []
    for declared in added:
        if declared.parent:
            sweeps.setdefault(declared.parent, _Sweep([], [])).added.append(declared)
        else:
            single_added.append(declared)
    for row in removed:
        if row.parent in sweeps and not row.protected:
            sweeps[row.parent].removed.append(row)
        else:
            single_removed.append(row)
    pairs: list[tuple[Declared, LiveResource]] = []
    for sweep in sweeps.values():
        found = _pair_sweep(sweep) if sweep.removed else {}
        pairs.extend(found.values())
        gone = {row.key for _, row in found.values()}
        single_added.extend(one for one in sweep.added if one.key.name not in found)
        single_removed.extend(row for row in sweep.removed if row.key not in gone)
    return Pairing(tuple(pairs), tuple(single_added), tuple(single_removed))


def _pair_sweep(sweep: _Sweep) -> dict[str, tuple[Declared, LiveResource]]:
    """Pairs by the added element's name; each pass is linear in the elements that are left."""
    added = {
        one.key.name: (one, _parameters(one.document))
        for one in sorted(sweep.added, key=lambda one: _order(one.document, one.element))
    }
    removed = {}
    documents = [(row, json.loads(row.document)) for row in sweep.removed]
    for row, document in sorted(documents, key=lambda pair: _order(pair[1], pair[0].element)):
        removed[row.key.name] = (row, _parameters(document))
    shared = _shared_names([*added.values(), *removed.values()])
    pairs: dict[str, tuple[Declared, LiveResource]] = {}
    for names in _subsets(shared):
        waiting: dict[tuple[str, ...], list[LiveResource]] = {}
        for row, values in removed.values():
            waiting.setdefault(tuple(values[name] for name in names), []).append(row)
        for group in waiting.values():
            group.reverse()  # The first in order is taken first, from the end.
        for name in list(added):
            declared, values = added[name]
            group = waiting.get(tuple(values[one] for one in names), [])
            if group:
                row = group.pop()
                pairs[name] = (declared, row)
                del added[name], removed[row.key.name]
        if not added or not removed:
            break
    return pairs


def _order(document: Mapping[str, Any], element: str) -> tuple[int, str]:
    """An array's elements by number, a sweep's by name."""
    return (document.get("index") or 0, element)


def _parameters(document: Mapping[str, Any]) -> dict[str, str]:
    # As JSON, because 1, 1.0 and true are equal to Python and three values to a program.
    return {name: json.dumps(value) for name, value in document.get("matrix", {}).items()}


def _shared_names(elements: Iterable[tuple[object, dict[str, str]]]) -> list[str]:
    """Parameters that every element has; a parameter that came or went tells none apart."""
    names = [frozenset(values) for _, values in elements]
    return sorted(frozenset.intersection(*names))


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Subsets of parameters that may be equal, the largest first; the empty one pairs the rest."""
    sizes = range(len(names), -1, -1)
    if len(names) > PARAMETERS_MAX:
        sizes_near = range(len(names), len(names) - 3, -1)
        for size in sizes_near:
            yield from combinations(names, size)
        yield ()
        return
    for size in sizes:
        yield from combinations(names, size)

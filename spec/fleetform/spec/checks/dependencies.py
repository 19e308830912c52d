"""
Check what runs wait for: runs that wait for each other wait for ever, and `each: true` needs the same elements on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Problem
from fleetform.spec.names import split_element
from fleetform.spec.references import Catalogue, Entry

# A way is looked for from each run, and costs as much as all runs of its cycle.
_WAYS_MAX = 100
# As many names as fit on two lines.
_SHOWN_MAX = 12


def check_cycles(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """
    Each cycle once for every run in it, with the way around.

    Documents are compared, not elements: an element that waits for another of its own sweep is
    refused as well, because then no order of the elements is sure to end.
    """
    entries = {entry.key.name: entry for entry in catalogue.of_kind("run")}
    for entry in catalogue.unnamed:
        # A wrong name is a name to whoever waits for it.
        for document in entry.documents[:1]:
            entries.setdefault(document.get("name", ""), entry)
    edges = {name: waits for name, entry in entries.items() if (waits := _waits_for(entry))}
    ways_left = _WAYS_MAX
    for component in _cycles(edges):
        members = set(component)
        for name in component:
            following = min(edges[name].keys() & members)
            ways_left -= 1
            way = _way_around(name, edges, members) if ways_left >= 0 else [name, following, name]
            detail = _detail(way) if ways_left >= 0 else _detail_of_many(name, len(members))
            yield entries[name], _cycle_problem(detail, way[1])


def _waits_for(entry: Entry) -> dict[str, str]:
    """Names of the documents waited for, each with the name as it is written."""
    return {
        split_element(dependency["run"])[0]: dependency["run"]
        for document in entry.documents
        for dependency in document.get("depends_on", {}).get("runs", ())
    }


def _detail(way: list[str]) -> str:
    if len(way) == 2:
        return f"`{way[0]}` waits for itself."
    shown = way if len(way) <= _SHOWN_MAX else [*way[: _SHOWN_MAX - 2], "…", way[-1]]
    return f"None of them can ever start: {' → '.join(shown)}."


def _detail_of_many(name: str, count: int) -> str:
    return f"Run `{name}` can never start: it is one of {count} runs that all wait for each other."


def _cycle_problem(detail: str, word: str) -> Problem:
    return Problem(
        "dependency-cycle",
        ("depends_on",),
        detail,
        "Remove one of these dependencies.",
        word=word,
    )


def _way_around(start: str, edges: Mapping[str, Mapping[str, str]], members: set[str]) -> list[str]:
    """A shortest way from `start` back to itself, by breadth; the first in order of name."""
    came_from: dict[str, str] = {}
    frontier = [start]
    while frontier:
        following = []
        for name in frontier:
            for neighbour in sorted(edges[name]):
                if neighbour == start:
                    return _walked(start, name, came_from)
                if neighbour in members and neighbour not in came_from:
                    came_from[neighbour] = name
                    following.append(neighbour)
        frontier = following
    raise AssertionError("every member of a cycle has a way around")


def _walked(start: str, last: str, came_from: Mapping[str, str]) -> list[str]:
    way = [start]
    while last != start:
        way.append(last)
        last = came_from[last]
    return [start, *reversed(way)]


def _cycles(edges: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """
    Sets of names that all lead to each other, after Tarjan (1972).

    With a stack of its own: a chain of ten thousand runs is deeper than Python's.
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    is_waiting: set[str] = set()
    found: list[list[str]] = []
    for root in edges:
        if root in order:
            continue
        stack = [(root, iter(edges[root]))]
        order[root] = lowest[root] = len(order)
        waiting.append(root)
        is_waiting.add(root)
        while stack:
            name, neighbours = stack[-1]
            neighbour = next((one for one in neighbours if one in edges), None)
            if neighbour is None:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == order[name]:
                    component = _popped(name, waiting, is_waiting)
                    if len(component) > 1 or name in edges[name]:
                        found.append(sorted(component))
            elif neighbour not in order:
                order[neighbour] = lowest[neighbour] = len(order)
                waiting.append(neighbour)
                is_waiting.add(neighbour)
                stack.append((neighbour, iter(edges[neighbour])))
            elif neighbour in is_waiting:
                lowest[name] = min(lowest[name], order[neighbour])
    return found


def _popped(name: str, waiting: list[str], is_waiting: set[str]) -> list[str]:
    component: list[str] = []
    while not component or component[-1] != name:
        component.append(waiting.pop())
    is_waiting.difference_update(component)
    return component


def check_elements(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Elements that have no partner, with one of them named."""
    for entry in catalogue.of_kind("run"):
        if entry.key in catalogue.broken:
            continue
        told: set[str] = set()
        for document in entry.documents:
            for dependency in document.get("depends_on", {}).get("runs", ()):
                name = dependency["run"]
                other = catalogue.by_key.get(ResourceKey("run", name))
                if not dependency.get("each") or other is None or name in told:
                    continue
                if other.key in catalogue.broken:
                    continue
                told.add(name)
                detail = _mismatch(entry, other)
                if detail:
                    yield entry, _element_problem(name, detail)


def _mismatch(entry: Entry, other: Entry) -> str:
    """Why the two cannot be matched; empty when they can."""
    for one in (entry, other):
        if not one.elements:
            return f"`{one.key.name}` is one run and has no elements."
    lacking = sorted(entry.elements - other.elements)
    if lacking:
        return f"`{entry.key.name}[{lacking[0]}]` would wait for the element `{other.key.name}[{lacking[0]}]`, which is not declared."
    extra = sorted(other.elements - entry.elements)
    if extra:
        return f"Nothing would wait for `{other.key.name}[{extra[0]}]`."
    return ""


def _element_problem(name: str, detail: str) -> Problem:
    return Problem(
        "element-mismatch",
        ("depends_on",),
        detail,
        f"Give both the same elements, or wait for all of `{name}` without `each`.",
        word=name,
    )

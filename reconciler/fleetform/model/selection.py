"""
Which resources an address on a command line means: `run/train`, `volume/*`, `sweep[*]`.

A star stands for any text, also across an element's brackets. A sweep's name means its elements
too, and a part of an element's parameters is enough. `train-*[3-7]` means elements of several arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fleetform.spec.names import Address, nearest, parse_address, split_element

if TYPE_CHECKING:
    from fleetform.spec.desired import ResourceKey

__all__ = ["Selection", "address_problem", "also_by_new_name", "split_correction"]

_ANY = "*"


def address_problem(text: str) -> str:
    """Say what keeps a text from being an address, as a sentence; empty where nothing does."""
    if _ANY in text:
        head, slash, name = text.partition("[")[0].partition("/")
        is_whole = bool(head) and (not slash or bool(name))
        return "" if is_whole else f"`{text}` has an empty kind or name."
    try:
        parse_address(text)
    except ValueError as error:
        return str(error)
    return ""


def split_correction(problem: str, otherwise: str) -> tuple[str, str]:
    """
    Split the sentence of a bad address into what is wrong and what to write.

    `otherwise` is the advice for a sentence that does not say what to write.
    """
    what, names_correction, correction = problem.partition("; write ")
    return what, f"write {correction.rstrip('.')}" if names_correction else otherwise


class Selection:
    """
    Some addresses; who takes them from people asks `address_problem` of each first.

    A bare name means a run, unless it says otherwise: most that people work with are.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._tests = [(text, _test(text)) for text in texts]

    def __bool__(self) -> bool:
        return bool(self._tests)

    def selects(self, key: ResourceKey, parent: str = "") -> bool:
        return any(test.selects(key, parent) for _, test in self._tests)

    def chosen(self, keys: Iterable[ResourceKey]) -> list[ResourceKey]:
        """Those of many keys that are meant, in their order."""
        # Of ten thousand nearly all begin otherwise, and a look at that costs a tenth.
        heads = tuple({test.head for _, test in self._tests})
        return [key for key in keys if key[1].startswith(heads) and self.selects(key, key.parent)]

    def idle(self, keys: Iterable[ResourceKey]) -> list[tuple[str, str]]:
        """Addresses that mean none of the resources, each with a suggestion."""
        there = list(keys)
        return [
            (text, _suggestion(text, there)) for text, test in self._tests if not _any(test, there)
        ]


def _test(text: str) -> _Plain | _Star:
    # What is no address by the rules for names can still be one that the ledger has.
    return _Star(text) if _ANY in text or address_problem(text) else _Plain(text)


def _any(test: _Plain | _Star, keys: Iterable[ResourceKey]) -> bool:
    head = test.head
    return any(test.selects(key, key.parent) for key in keys if key[1].startswith(head))


class _Plain:
    """`head` is what every name begins with that is meant."""

    def __init__(self, text: str) -> None:
        address = parse_address(text)
        self._address = (
            address
            if address.kind
            else Address("run", address.name, address.params, address.indices)
        )
        self.head = address.name

    def selects(self, key: ResourceKey, _parent: str) -> bool:
        return self._address.selects(*key)


class _Star:
    """`head` is what stands before the first star; an element begins as its parent does."""

    def __init__(self, text: str) -> None:
        kind, slash, name = text.partition("/")
        if not slash:
            kind, name = (_ANY, _ANY) if text == _ANY else ("run", text)
        self.head = name.partition(_ANY)[0]
        self._element = _element_test(name)
        if self._element is not None:
            name = name.partition("[")[0]
        self._kind, self._name = _pattern(kind), _pattern(name)

    def selects(self, key: ResourceKey, parent: str) -> bool:
        if self._kind.fullmatch(key.kind) is None:
            return False
        if self._element is not None:
            own, element = split_element(key.name)
            return self._name.fullmatch(own) is not None and self._element.selects(
                "", f"{_STAND_IN}[{element}]"
            )
        names = (key.name, parent) if parent else (key.name,)
        return any(self._name.fullmatch(name) for name in names)


_STAND_IN = "any"
"""The name of an address of which only the element is asked."""


def _element_test(name: str) -> Address | None:
    """Read what stands in the brackets of `train-*[3-7]`; None for a star in them, or no brackets."""
    _, bracket, inside = name.partition("[")
    if not bracket or _ANY in inside:
        return None
    try:
        return parse_address(f"{_STAND_IN}[{inside}")
    except ValueError:
        return None


def _pattern(text: str) -> re.Pattern[str]:
    # Not fnmatch's: to it the brackets of an element are a set of letters.
    return re.compile(".*".join(re.escape(part) for part in text.split(_ANY)), re.DOTALL)


def _suggestion(text: str, there: Iterable[ResourceKey]) -> str:
    """
    The address that is most likely meant, or empty.

    Names are compared with names: what a kind is called makes nothing alike.
    """
    head, slash, rest = text.partition("[")[0].partition("/")
    kind, name = (head, rest) if slash else ("", head)
    by_name: dict[str, dict[str, None]] = {}
    for key in there:
        by_name.setdefault(key.parent or key.name, {})[key.kind] = None
    if name not in by_name:
        of_kind = [one for one, kinds in by_name.items() if not kind or kind in kinds]
        # Comparing with all names of a great tree would take longer than the plan.
        name = nearest(name, sorted(of_kind)[:_COMPARED_MAX]) or ""
    if not name:
        return ""
    kinds = by_name[name]
    # A bare name means a run, and so does one that is said with the type that a plan shows.
    return f"{next((one for one in (kind, 'run') if one in kinds), next(iter(kinds)))}/{name}"


_COMPARED_MAX = 2000


def also_by_new_name(
    texts: Iterable[str], moved: Iterable[tuple[ResourceKey, ResourceKey]]
) -> tuple[str, ...]:
    """
    The addresses, and for each that means something by an earlier name the one by the new name.

    Whether the renaming is still to be made or was made long ago: who knows a thing by one of its
    names means the thing. Elements of a sweep that is renamed as a whole keep their brackets.
    """
    found = dict.fromkeys(texts)
    pairs = list(moved)
    waiting = list(found)
    while waiting:
        text = waiting.pop()
        for before, after in pairs:
            new = _by_new_name(text, before, after)
            if new and new not in found:
                found[new] = None
                # It may have been renamed once more since.
                waiting.append(new)
    return tuple(found)


def _by_new_name(text: str, before: ResourceKey, after: ResourceKey) -> str:
    head, bracket, inside = text.partition("[")
    kind, slash, name = head.rpartition("/")
    if kind == "host" and before.kind == "fleet":
        # Hosts that are called by their fleet and number are renamed with it.
        number = name.removeprefix(f"{before.name}-")
        return f"host/{after.name}-{number}" if name != number and number.isdigit() else ""
    if bracket and _ANY not in head and (kind if slash else "run", name) == before:
        return f"{after}{bracket}{inside}"
    return str(after) if _test(text).selects(before, before.name.partition("[")[0]) else ""

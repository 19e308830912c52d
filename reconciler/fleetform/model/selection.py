"""
Which resources an address means that somebody gave to a command: `run/train`, `volume/*`, `sweep[*]`.

A star stands for any text, also across an element's brackets. A sweep's name means its elements
too, and a part of an element's parameters is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import Address, nearest, parse_address

__all__ = ["Selection", "address_problem"]

_ANY = "*"


def address_problem(text: str) -> str:
    """Say what keeps a text from being an address, as a sentence; empty where nothing does."""
    if _ANY in text:
        head, slash, name = text.partition("[")[0].partition("/")
        is_whole = bool(head) and (not slash or bool(name))
        return "" if is_whole else f"`{text}` names nothing beside its slash."
    try:
        parse_address(text)
    except ValueError as error:
        return str(error)
    return ""


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

    def idle(self, keys: Iterable[tuple[ResourceKey, str]]) -> list[tuple[str, str]]:
        """Addresses that mean none of the resources (key and parent), each with a suggestion."""
        there = list(keys)
        return [
            (text, _suggestion(text, there))
            for text, test in self._tests
            if not any(test.selects(key, parent) for key, parent in there)
        ]


def _test(text: str) -> _Plain | _Star:
    # What is no address by the rules for names can still be one that the ledger has.
    return _Star(text) if _ANY in text or address_problem(text) else _Plain(text)


class _Plain:
    def __init__(self, text: str) -> None:
        address = parse_address(text)
        self._address = (
            address
            if address.kind
            else Address("run", address.name, address.params, address.indices)
        )

    def selects(self, key: ResourceKey, _parent: str) -> bool:
        return self._address.selects(*key)


class _Star:
    def __init__(self, text: str) -> None:
        kind, slash, name = text.partition("/")
        if not slash:
            kind, name = (_ANY, _ANY) if text == _ANY else ("run", text)
        self._kind, self._name = _pattern(kind), _pattern(name)

    def selects(self, key: ResourceKey, parent: str) -> bool:
        if self._kind.fullmatch(key.kind) is None:
            return False
        names = (key.name, parent) if parent else (key.name,)
        return any(self._name.fullmatch(name) for name in names)


def _pattern(text: str) -> re.Pattern[str]:
    # Not fnmatch's: to it the brackets of an element are a set of letters.
    return re.compile(".*".join(re.escape(part) for part in text.split(_ANY)), re.DOTALL)


def _suggestion(text: str, there: Iterable[tuple[ResourceKey, str]]) -> str:
    """The address that is most likely meant, or empty."""
    names: dict[str, None] = {}
    for key, parent in there:
        names[str(key)] = None
        names[f"{key.kind}/{parent or key.name}"] = None
    bare = text.rpartition("/")[2] if "[" not in text else text.partition("[")[0]
    same = [name for name in names if name.partition("/")[2] == bare]
    whole = text if "/" in text else f"run/{text}"
    # Comparing with all elements of a great sweep would take longer than the plan.
    return same[0] if same else nearest(whole, sorted(names)[:2000]) or ""

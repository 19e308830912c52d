"""Differences between the inputs of a resource, with the paths that the engine shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Difference:
    path: str
    kind: Literal["add", "delete", "update"]

    @property
    def root(self) -> str:
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]


def compare(old: Any, new: Any) -> list[Difference]:
    """Return the differences between two maps of inputs, in the order of their paths."""
    return sorted(_differences(old, new, ""), key=lambda one: one.path)


def _differences(old: Any, new: Any, path: str) -> Iterator[Difference]:
    if old == new:
        return
    if old is None:
        yield Difference(path, "add")
    elif new is None:
        yield Difference(path, "delete")
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() | new.keys():
            yield from _differences(old.get(name), new.get(name), _join(path, name))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            yield from _differences(before, after, f"{path}[{index}]")
    else:
        yield Difference(path, "update")


def _join(path: str, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_$][\w$]*", name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def replaces(path: str, replacing: frozenset[str]) -> bool:
    """Say whether a difference is in one of the inputs that only a new object can have."""
    return any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in replacing)


def like(given: Any, found: Any) -> Any:
    """Return what was found of that which was given: defaults of AWS are no difference."""
    if isinstance(given, dict) and isinstance(found, dict):
        return {name: like(value, found.get(name)) for name, value in given.items()}
    if isinstance(given, list) and isinstance(found, list) and len(given) == len(found):
        if all(isinstance(one, str) for one in given) and sorted(given) == sorted(map(str, found)):
            return given
        return [like(one, other) for one, other in zip(given, found, strict=True)]
    return found

"""
What `environment.yaml` says of single resources: which were renamed, released or adopted.

An entry is compared with what the tree declares. One that contradicts it stops the environment.
One that names what is declared no more is a warning: it may have been carried out long ago.
Whether there is still anything to do for it is for a plan, which knows the ledger, and holds what
a mistyped name would else remove.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import nearest

if TYPE_CHECKING:
    from fleetform.spec.environment import EnvironmentDocument
    from fleetform.spec.references import Catalogue

__all__ = ["NO_ADDRESSES", "Addresses", "check", "read"]


class Addresses(NamedTuple):
    """
    Attributes:
        moved: Each earlier name and the one that follows it, as written and in that order.
        removed: In order, as written.
        imports: The same.
    """

    moved: tuple[tuple[ResourceKey, ResourceKey], ...] = ()
    removed: tuple[ResourceKey, ...] = ()
    imports: tuple[ResourceKey, ...] = ()

    @property
    def resolved(self) -> tuple[tuple[ResourceKey, ResourceKey], ...]:
        """The moves with the last name of each chain; only for those that `check` finds right."""
        following = dict(self.moved)
        return tuple((before, _last(after, following)) for before, after in self.moved)


NO_ADDRESSES = Addresses()


def read(document: EnvironmentDocument) -> Addresses:
    return Addresses(
        tuple((_key(one.from_), _key(one.to)) for one in document.moved or ()),
        tuple(_key(one) for one in document.removed or ()),
        tuple(_key(one) for one in document.imports or ()),
    )


def check(addresses: Addresses, catalogue: Catalogue) -> Iterator[Problem]:
    """Everything that is wrong with the entries, by themselves and against the tree."""
    yield from _check_moves(addresses.moved, catalogue)
    yield from _check_removed(addresses, catalogue)
    yield from _check_imports(addresses, catalogue)


def _key(text: str) -> ResourceKey:
    kind, _, name = text.partition("/")
    return ResourceKey(kind, name)


def _last(key: ResourceKey, following: Mapping[ResourceKey, ResourceKey]) -> ResourceKey:
    while key in following:
        key = following[key]
    return key


def _check_moves(
    moved: Sequence[tuple[ResourceKey, ResourceKey]], catalogue: Catalogue
) -> Iterator[Problem]:
    following: dict[ResourceKey, ResourceKey] = {}
    taken: dict[ResourceKey, ResourceKey] = {}
    for number, (before, after) in enumerate(moved):
        if before in following:
            yield Problem(
                "said-twice",
                ("moved", number, "from"),
                f"`{before}` is already renamed to `{following[before]}`.",
                "Keep one of the two entries.",
            )
        elif after in taken:
            yield Problem(
                "contradiction",
                ("moved", number, "to"),
                f"`{taken[after]}` is already renamed to `{after}`, and names are unique.",
                "Keep one of the two entries.",
            )
        following.setdefault(before, after)
        taken.setdefault(after, before)
    for number, (before, after) in enumerate(moved):
        circle = _circle(before, following)
        if circle is not None:
            # Told once, at the first of its entries.
            if number == next(at for at, (one, _) in enumerate(moved) if one in circle):
                yield Problem(
                    "contradiction",
                    ("moved", number),
                    f"The renames form a cycle: {' → '.join(map(str, (*circle, before)))}.",
                    "Remove one of the entries.",
                )
            continue
        yield from _check_ends(number, before, after, following, catalogue)


def _circle(
    key: ResourceKey, following: Mapping[ResourceKey, ResourceKey]
) -> tuple[ResourceKey, ...] | None:
    """The names on the way back to `key`, beginning with it; None where there is no way back."""
    way = [key]
    while (one := following.get(way[-1])) is not None and one not in way:
        way.append(one)
    return tuple(way) if one == key else None


def _check_ends(
    number: int,
    before: ResourceKey,
    after: ResourceKey,
    following: Mapping[ResourceKey, ResourceKey],
    catalogue: Catalogue,
) -> Iterator[Problem]:
    if catalogue.is_known(*before):
        yield Problem(
            "contradiction",
            ("moved", number, "from"),
            f"`{before}` is still declared, so it is not an old name.",
            "Rename its document, or remove the entry.",
        )
    if after not in following and not _may_be_declared(after, catalogue):
        yield Problem(
            "unknown-reference",
            ("moved", number, "to"),
            f"No document declares `{after}`. An existing `{before}` is left as it is.",
            _meant(after, catalogue, "Declare it, or remove the entry."),
            level=Level.WARNING,
        )


def _check_removed(addresses: Addresses, catalogue: Catalogue) -> Iterator[Problem]:
    moved = dict(addresses.moved)
    seen: set[ResourceKey] = set()
    for number, key in enumerate(addresses.removed):
        where = ("removed", number)
        if key in seen:
            yield _said_twice(where, key)
        elif catalogue.is_known(*key):
            yield Problem(
                "contradiction",
                where,
                f"`{key}` is still declared, so it cannot be released.",
                "Remove its document, or this entry.",
            )
        elif key in moved:
            yield Problem(
                "contradiction",
                where,
                f"`{key}` is renamed to `{moved[key]}`, so it cannot be released too.",
                "Keep one of the two entries.",
            )
        seen.add(key)


def _check_imports(addresses: Addresses, catalogue: Catalogue) -> Iterator[Problem]:
    seen: set[ResourceKey] = set()
    for number, key in enumerate(addresses.imports):
        where = ("import", number)
        if key in seen:
            yield _said_twice(where, key)
        elif not _may_be_declared(key, catalogue):
            yield Problem(
                "unknown-reference",
                where,
                f"No document declares `{key}`, so it cannot be adopted.",
                _meant(key, catalogue, "Declare it as it is, or remove the entry."),
                level=Level.WARNING,
            )
        seen.add(key)


def _said_twice(where: tuple[str | int, ...], key: ResourceKey) -> Problem:
    return Problem("said-twice", where, f"`{key}` is named twice.", "Keep one of the two.")


def _may_be_declared(key: ResourceKey, catalogue: Catalogue) -> bool:
    return catalogue.is_lacking(key.kind) or catalogue.is_known(*key)


def _meant(key: ResourceKey, catalogue: Catalogue, otherwise: str) -> str:
    close = nearest(key.name, catalogue.names(key.kind))
    return f"Did you mean `{key.kind}/{close}`?" if close else otherwise

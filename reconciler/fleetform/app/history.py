"""Finds what was planned and applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.app.problems import WorkspaceProblem
from fleetform.plan.serialize import load
from fleetform.views.history import Past

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetform.model.plan import Change, Plan
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import ResourceKey

__all__ = ["find_plan", "past_of"]

PAST_MAX = 500
"""Applies that a look back goes through; each means reading a plan."""


def find_plan(reader: Reader, named: str) -> tuple[str, Plan]:
    """
    Find a plan of the ledger by its digest, or the beginning of it; `last` is the one made last.

    Returns:
        The digest and the plan.

    Raises:
        WorkspaceProblem: There is none, there are several, or it cannot be read.
    """
    digest = _digest(reader, named)
    body = reader.read_plan(digest)
    assert body is not None, "its digest was just read"
    try:
        return digest, load(body)
    except ValueError as error:
        raise WorkspaceProblem(f"plan {digest[:12]} cannot be read: {error}") from error


def _digest(reader: Reader, named: str) -> str:
    if named == "last":
        entries = reader.read_history(limit=1)
        if not entries:
            raise WorkspaceProblem("there is no plan yet", "`fleetform plan` creates one")
        return entries[0].digest
    is_digest = len(named) >= _DIGEST_MIN and all(one in "0123456789abcdef" for one in named)
    found = reader.find_digests(named) if is_digest else ()
    if len(found) == 1:
        return found[0]
    if found:
        raise WorkspaceProblem(
            f"more than one plan begins with `{named}`", "write more digits of it"
        )
    raise WorkspaceProblem(
        f"there is no plan `{named}`",
        "`fleetform history` lists them; write at least four digits of one, `last`, or a file that"
        " `plan --out` wrote",
    )


_DIGEST_MIN = 4


def past_of(reader: Reader, key: ResourceKey) -> tuple[Past, ...]:
    """Follow a resource back through the plans that changed it, also under earlier names."""
    found: list[Past] = []
    before: int | None = None
    while key is not None:
        earlier = None
        for past in _touches(reader, key):
            # What another resource did under a name that this one took later is not its past.
            if before is not None and past.entry.at_ms > before:
                continue
            found.append(past)
            if past.change.moved_from and str(past.change.key) == str(key):
                earlier = key._replace(name=past.change.moved_from)
                before = past.entry.at_ms
                break
        if earlier is None:
            break
        key = earlier
    return tuple(found)


def _touches(reader: Reader, key: ResourceKey) -> Iterator[Past]:
    for touch in reader.read_touches(key, limit=PAST_MAX):
        try:
            plan = load(touch.body)
        except ValueError:
            continue  # Made by a release that wrote plans otherwise: its row still stands.
        change = next((one for one in plan.changes if _is_of(one, key)), None)
        if change is not None:
            yield Past(touch.entry, change)


def _is_of(change: Change, key: ResourceKey) -> bool:
    return change.key == key or (
        change.key.kind == key.kind and key.name in {change.replaces, change.moved_from} - {""}
    )

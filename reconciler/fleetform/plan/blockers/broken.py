"""
A document with an error holds back itself and what refers to it.

What it would have declared is not known, so its resources are neither changed nor removed:
the last good version stays in force. The comparison has left them out; here they are listed.
While a file cannot be read at all, nothing goes for being absent.
"""

from __future__ import annotations

from fleetform.model.plan import Action, Change, Held, HeldBy
from fleetform.plan.draft import Sheet
from fleetform.spec.desired import Declared, ResourceKey

# Kinds that nobody has five broken documents of one name in: it is one of which none is known.
_OF_UNKNOWN_KIND = frozenset({"fleet", "volume", "run", "profile", "secret"})
_CURE = "correct the document; `fleetform validate` lists its findings"


def hold_broken(sheet: Sheet) -> None:
    if sheet.permissions.destroy:
        return
    if sheet.desired.unread:
        _hold_removals(sheet)
    if sheet.desired.broken:
        _hold_what_is_broken(sheet)


def _hold_removals(sheet: Sheet) -> None:
    """A file that cannot be read may declare what seems to be gone."""
    file, *more = sheet.desired.unread
    files = file if not more else f"{file} and {len(more)} more"
    for key in sorted(sheet.changes):
        if key not in sheet.wanted and key.kind != "environment":
            detail = f"{files} cannot be read and may declare it"
            sheet.hold(key, HeldBy.BROKEN_DOCUMENT, detail, f"make {files} readable")


def _hold_what_is_broken(sheet: Sheet) -> None:
    broken = sheet.desired.broken
    for key in sorted(sheet.changes):
        declared = sheet.wanted.get(key)
        cause = None if declared is None else _broken_reference(broken, declared)
        if cause is not None:
            detail = f"{cause}, which it refers to, has an invalid document"
            sheet.hold(key, HeldBy.BROKEN_DOCUMENT, detail, _CURE)
    for key in sorted(_told(sheet)):
        if key.kind != "environment":
            change = _unknown_change(sheet, key)
            detail = "its document is invalid"
            sheet.held[key] = Held(change, HeldBy.BROKEN_DOCUMENT, detail, _CURE)


def _told(sheet: Sheet) -> set[ResourceKey]:
    """
    What is broken, without what it only might be.

    A document of unknown kind stands for one of each kind, so that nothing is touched which it may
    declare. To people it is what there is of that name, or else a run.
    """
    broken = set(sheet.desired.broken)
    kinds: dict[str, set[str]] = {}
    for key in broken:
        kinds.setdefault(key.name, set()).add(key.kind)
    for name, said in kinds.items():
        if not said >= _OF_UNKNOWN_KIND:
            continue
        guessed = {ResourceKey(kind, name) for kind in said}
        there = {key for key in guessed if _is_there(sheet, key)}
        broken -= guessed - (there or {ResourceKey("run", name)})
    return broken


def _is_there(sheet: Sheet, key: ResourceKey) -> bool:
    return key in sheet.present or any(
        one.kind == key.kind and one.parent == key.name for one in sheet.present
    )


def _broken_reference(broken: frozenset[ResourceKey], declared: Declared) -> ResourceKey | None:
    """The first broken thing that a document refers to, or None."""
    runs = (ResourceKey("run", name) for name in declared.upstream)
    for key in (*declared.references, *runs):
        # What is broken of a sweep is its document, which bears the name without the element.
        for candidate in (key, ResourceKey(key.kind, key.name.partition("[")[0])):
            if candidate in broken:
                return candidate
    return None


def _unknown_change(sheet: Sheet, key: ResourceKey) -> Change:
    """Something would happen to it, and nobody can say what."""
    row = sheet.present.get(key)
    return Change(
        key=key,
        action=Action.UPDATE if _is_there(sheet, key) else Action.CREATE,
        reasons=(),
        type=key.kind if row is None else row.type,
        uid="" if row is None else row.uid,
        generation=0 if row is None else row.generation,
    )

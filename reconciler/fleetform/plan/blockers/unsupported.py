"""
What is declared rightly and cannot be carried out: it is shown, and left alone.

Either nothing acts on one of its fields yet, so that it would become something else than was
declared; or it names what no document declares. The comparison has left these out; here they
are listed, with all that stands in their way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, Held, HeldBy, Reason
from fleetform.plan.diff import changed_fields, set_fields
from fleetform.plan.draft import Sheet
from fleetform.spec.desired import Beyond, Declared, Obstacle

_UNDECLARED = "undeclared-reference"

_DECLARE = "declare the resource that it refers to"
_WAIT = "wait for a version that supports it"


def hold_beyond(sheet: Sheet) -> None:
    if sheet.permissions.destroy:
        return
    for key, beyond in sheet.desired.beyond.items():
        row = sheet.present.get(key)
        if row is None or row.digest != beyond.declared.digest:
            sheet.held[key] = held_by_obstacles(beyond, row)


def held_by_obstacles(beyond: Beyond, row: LiveResource | None) -> Held:
    """Return the blocked change of a resource; `row` is what the ledger has of it."""
    change = _change(beyond.declared, row)
    missing = [_clause(one) for one in beyond.obstacles if one.code == _UNDECLARED]
    others = [one for one in beyond.obstacles if one.code != _UNDECLARED]
    if not missing:
        return Held(
            change, HeldBy.NOT_CARRIED_OUT, _unbuilt(others), f"{_removal(others)}, or {_WAIT}"
        )
    if not others:
        return Held(change, HeldBy.DEPENDENCY, "; ".join(missing), _DECLARE)
    # Told together: whoever only declares what is missing would have been sent on an errand.
    detail = "; ".join((*missing, _unbuilt(others)))
    return Held(change, HeldBy.DEPENDENCY, detail, f"{_DECLARE}, and {_WAIT}")


def _unbuilt(obstacles: Sequence[Obstacle]) -> str:
    """One is told with its reason; of several, that would be a page which `validate` has."""
    if len(obstacles) == 1:
        return _clause(obstacles[0])
    return f"not supported yet: {_fields(obstacles)}"


def _removal(obstacles: Sequence[Obstacle]) -> str:
    """Name the fields; of a whole kind that is not supported, the document is what is to go."""
    fields = {one.field for one in obstacles}
    return f"remove {'the document' if fields & {'', 'type'} else _fields(obstacles)}"


def _clause(obstacle: Obstacle) -> str:
    """What stands in the way, to go on a sentence with."""
    return f"{obstacle.detail[:1].lower()}{obstacle.detail[1:].rstrip('.')}"


def _fields(obstacles: Iterable[Obstacle]) -> str:
    quoted = [f"`{name}`" for name in sorted({one.field for one in obstacles})]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _change(declared: Declared, row: LiveResource | None) -> Change:
    return Change(
        key=declared.key,
        action=Action.CREATE if row is None else Action.UPDATE,
        reasons=(Reason.ABSENT,) if row is None else (),
        type=declared.type,
        fields=set_fields(declared.key.kind, declared.document)
        if row is None
        else changed_fields(declared.key.kind, json.loads(row.document), declared.document),
        uid="" if row is None else row.uid,
        generation=0 if row is None else row.generation,
        parent=declared.parent,
        element=declared.element,
    )

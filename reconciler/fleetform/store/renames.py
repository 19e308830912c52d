"""
Renames rows, with everything that is kept by name.

The uid identifies a resource, so neither instances nor jobs nor logs change. References in other documents are renamed in
the same transaction: a round of scheduling in between would look for a fleet that does not exist. Events keep the old
name, and one event records the rename.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.model.predicates import BEING_STARTED
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames, digests_of, rename_references
from fleetform.store.database import Transaction, to_json
from fleetform.store.offers import rename_offers
from fleetform.store.overrides import rename_targets

if TYPE_CHECKING:
    from fleetform.model.apply import StepOutcome
    from fleetform.model.plan import Step
    from fleetform.store.resources import Context

__all__ = ["move"]

# No name contains it: it marks a row between its old name and its new one.
_ON_THE_WAY = "~"


class _Move(NamedTuple):
    before: ResourceKey
    after: ResourceKey
    parent: str
    element: str


def move(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    """Carry out all renamings of a plan at once, or none of them."""
    moves = [_move_of(step) for step in steps]
    sweeps = _sweeps(steps)
    renames = Renames({**_pairs(moves), **sweeps})
    starting = _starting(context.transaction, moves, renames)
    if starting:
        for step in steps:
            context.refused[step.key] = (
                f"run/{starting} {BEING_STARTED}; plan again once it is running"
            )
        return
    moves += _give_way(context.transaction, moves)
    # In two turns, since one may get the name that another gives up.
    _rename(context.transaction, moves, "", _ON_THE_WAY)
    _rename(context.transaction, moves, _ON_THE_WAY, "")
    _rename_targets(context.transaction, {**_pairs(moves), **sweeps})
    _rename_hosts(context.transaction, moves)
    _rename_in_documents(context, renames, _own_digests(steps))
    for one in moves[: len(steps)]:
        for key in (one.before, one.after):
            context.transaction.log(
                "resource.moved", context.now_ms, f"{one.before} was renamed to {one.after}", key
            )


def _move_of(step: Step) -> _Move:
    said = step.arguments
    return _Move(
        ResourceKey(step.resource.kind, said["from"]),
        step.resource,
        said.get("parent", ""),
        said.get("element", ""),
    )


def _pairs(moves: Sequence[_Move]) -> dict[ResourceKey, ResourceKey]:
    return {one.before: one.after for one in moves}


def _sweeps(steps: Sequence[Step]) -> dict[ResourceKey, ResourceKey]:
    """The sweeps that are renamed with all their elements."""
    return {
        ResourceKey(step.resource.kind, sweep): ResourceKey(
            step.resource.kind, split_element(step.resource.name)[0]
        )
        for step in steps
        if (sweep := step.arguments.get("sweep"))
    }


def _own_digests(steps: Sequence[Step]) -> Mapping[str, str]:
    return next(
        (step.arguments["own_digests"] for step in steps if step.arguments.get("own_digests")), {}
    )


def _starting(transaction: Transaction, moves: Sequence[_Move], renames: Renames) -> str:
    """Name a run that is being sent to its host under a name that would change, or nothing."""
    going = {one.before.name for one in moves if one.before.kind == "run"}
    rows = transaction.execute(
        "SELECT r.name, r.document FROM runs r"
        " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE r.final = 0 AND a.state IN ('reserved', 'starting') ORDER BY r.number"
    ).fetchall()
    for name, document in rows:
        if name in going or _renamed("run", document, renames) is not None:
            return str(name)
    return ""


def _give_way(transaction: Transaction, moves: Sequence[_Move]) -> list[_Move]:
    """Return moves of tombstones whose name another row gets: they take the name that becomes free."""
    found = []
    gone = {one.before for one in moves}
    for one in moves:
        there = transaction.one(
            "SELECT archived FROM resources WHERE kind = ? AND name = ?", one.after
        )
        if there is not None and one.after not in gone:
            assert there[0], f"{one.after} is there"
            parent, element = split_element(one.before.name)
            found.append(_Move(one.after, one.before, parent if element else "", element))
    return found


def _rename(transaction: Transaction, moves: Sequence[_Move], before: str, after: str) -> None:
    """One turn: from `name + before` to `name + after`, of the old and of the new name."""
    pairs = [
        (
            one,
            (one.after if before else one.before).name + before,
            # On the way it has its new name already, with the mark.
            one.after.name + after,
        )
        for one in moves
    ]
    transaction.many(
        "UPDATE resources SET name = ?, parent = ?, element = ?, generation = generation + ?"
        " WHERE kind = ? AND name = ?",
        (
            (new, one.parent, one.element, int(not before), one.after.kind, old)
            for one, old, new in pairs
        ),
    )
    rename_offers(transaction, ((old, new) for one, old, new in pairs if one.after.kind == "fleet"))
    runs = [(one, old, new) for one, old, new in pairs if one.after.kind == "run"]
    # Also those before it: they are its history.
    transaction.many(
        "UPDATE runs SET name = ?, parent = ?, element = ?, generation = generation + ?"
        " WHERE name = ?",
        ((new, one.parent, one.element, int(not before), old) for one, old, new in runs),
    )
    fleets = [(old, new) for one, old, new in pairs if one.after.kind == "fleet"]
    transaction.many(
        "UPDATE instances SET fleet = ?, generation = generation + ? WHERE fleet = ?",
        ((new, int(not before), old) for old, new in fleets),
    )
    volumes = [(new, old) for one, old, new in pairs if one.after.kind == "volume"]
    # What it left elsewhere is its own under the new name as well.
    transaction.many("UPDATE snapshots SET volume = ? WHERE volume = ? AND place = path", volumes)


def _rename_targets(transaction: Transaction, pairs: Mapping[ResourceKey, ResourceKey]) -> None:
    """Rename the targets of overrides, also those of a whole sweep."""
    names = {str(before): str(after) for before, after in pairs.items()}
    rename_targets(transaction, ((old, after + _ON_THE_WAY) for old, after in names.items()))
    rename_targets(transaction, ((after + _ON_THE_WAY, after) for after in names.values()))


def _rename_hosts(transaction: Transaction, moves: Sequence[_Move]) -> None:
    """Rename hosts that are named by their fleet and number, and the overrides that name them."""
    for one in moves:
        if one.after.kind != "fleet":
            continue
        old, new = one.before.name, one.after.name
        numbers = transaction.execute(
            "SELECT uid, number, name FROM instances WHERE fleet = ? ORDER BY number", (new,)
        ).fetchall()
        names = [
            (uid, name, f"{new}-{number}")
            for uid, number, name in numbers
            if name == f"{old}-{number}"
        ]
        transaction.many(
            "UPDATE instances SET name = ? WHERE uid = ?", ((after, uid) for uid, _, after in names)
        )
        rename_targets(
            transaction, ((f"host/{before}", f"host/{after}") for _, before, after in names)
        )


# -- documents ----------------------------------------------------------------------------


def _rename_in_documents(
    context: Context, renames: Renames, own_digests: Mapping[str, str]
) -> None:
    transaction = context.transaction
    for kind, name, whole, own, document in transaction.execute(
        "SELECT kind, name, digest, own_digest, document FROM resources"
        " WHERE kind IN ('queue', 'run', 'volume') ORDER BY kind, name"
    ).fetchall():
        renamed = _renamed(kind, document, renames)
        if renamed is None:
            continue
        digest, execution = digests_of(kind, renamed) if whole else ("", "")
        # What it inherits is in the document too; what it says itself, the plan knows.
        said = digest if own == whole else own_digests.get(f"{kind}/{name}", own)
        transaction.execute(
            "UPDATE resources SET document = ?, digest = ?, execution_digest = ?, own_digest = ?,"
            " generation = generation + 1 WHERE kind = ? AND name = ?",
            (to_json(renamed), digest, execution, said, kind, name),
        )
    _rename_in_open_runs(transaction, renames)


def _rename_in_open_runs(transaction: Transaction, renames: Renames) -> None:
    """Rename in runs that are not over: a further attempt needs the new names, and a finished run keeps its document."""
    for uid, document in transaction.execute(
        "SELECT uid, document FROM runs WHERE final = 0 ORDER BY number"
    ).fetchall():
        renamed = _renamed("run", document, renames)
        if renamed is not None:
            transaction.execute(
                "UPDATE runs SET document = ?, execution_digest = ?, generation = generation + 1"
                " WHERE uid = ?",
                (to_json(renamed), digests_of("run", renamed)[1], uid),
            )


def _renamed(kind: str, document: str, renames: Renames) -> Mapping[str, Any] | None:
    """Return the document with the new names; None if it mentions none of them."""
    if not document or not renames.may_be_in(document):
        return None
    read = json.loads(document)
    renamed = rename_references(kind, read, renames)
    return None if renamed == read else renamed

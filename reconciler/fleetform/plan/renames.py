"""
Renamed resources: the rows of the ledger under their new names.

The uid identifies a resource, and a name is a label. So before anything is compared, the rows of the ledger and the
references in them get their new names: a difference is then a change, and a mere rename is none. The rename itself is a
step of its own, before all others of its resource.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from fleetform.model.live import Live, LiveResource, Work, changed_rows
from fleetform.model.override import Override
from fleetform.model.plan import Action, Change, HeldBy, Reason, Step
from fleetform.model.predicates import BEING_STARTED
from fleetform.model.run_state import RunState
from fleetform.model.verbs import Verb
from fleetform.plan.draft import (
    NOTHING_MOVED,
    Moves,
    PlanDraft,
    Proposal,
    make_step,
    propose_change_of_row,
)
from fleetform.spec.desired import Declared, Desired, ResourceKey
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames, digests_of, rename_references

__all__ = [
    "PARAMETERS_MAX",
    "Pairing",
    "add_moves",
    "hold_moved_nowhere",
    "hold_while_starting",
    "moved_live",
    "pair_elements",
    "renames_of",
    "stuck_warnings",
]


_STARTING = frozenset({RunState.PROVISIONING, RunState.PREPARING})


def moved_live(desired: Desired, live: Live) -> tuple[Live, Moves]:
    """Return what is live under the names that hold now; the same where nothing was renamed."""
    if not desired.moved:
        return live, NOTHING_MOVED
    live = replace(live, overrides=_of_the_absent(desired, live))
    pairs, stuck = _effective(desired, live)
    if not pairs:
        return live, Moves({}, stuck)
    renames = Renames({**pairs, **_sweeps(desired, pairs)})
    hosts = _hosts(live, renames)
    rows: dict[ResourceKey, LiveResource] = {}
    mentioning: set[ResourceKey] = set()
    displaced = {after: before for before, after in pairs.items() if after in live.resources}
    for key, row in live.resources.items():
        # A tombstone under the new name gives way: it takes the name that is given up.
        renamed = displaced[key] if key in displaced and key not in pairs else pairs.get(key, key)
        documented = _documented(row, renames)
        if documented is not row:
            mentioning.add(renamed)
        rows[renamed] = _called(documented, renamed)
    return (
        replace(
            live,
            resources=rows,
            instances=tuple(
                replace(
                    one, fleet=renames.name("fleet", one.fleet), name=hosts.get(one.name, one.name)
                )
                for one in live.instances
            ),
            exchanging={
                renames.name("fleet", one): live.exchanging[one] for one in live.exchanging
            },
            work=tuple(
                replace(
                    one,
                    run=_who(one, displaced, renames),
                    fleet=renames.name("fleet", one.fleet),
                    hosts=tuple(hosts.get(host, host) for host in one.hosts),
                )
                for one in live.work
            ),
            overrides=tuple(
                replace(one, target=_target(one.target, renames, hosts)) for one in live.overrides
            ),
            claims={renames.of(key): claim for key, claim in live.claims.items()},
            drift=tuple(replace(one, resource=renames.of(one.resource)) for one in live.drift),
            tried_offers={
                renames.name("fleet", name): offers for name, offers in live.tried_offers.items()
            },
        ),
        Moves(
            {after: before for before, after in pairs.items()},
            stuck,
            frozenset(mentioning),
            {before: after for after, before in displaced.items()},
        ),
    )


def _who(work: Work, displaced: Mapping[ResourceKey, ResourceKey], renames: Renames) -> str:
    """Return the run of this work by its new name; also of a tombstone whose name another run gets."""
    key = ResourceKey("run", work.run)
    return (displaced.get(key) or renames.of(key)).name


def renames_of(steps: Iterable[Step]) -> Renames:
    """Return all that the steps of a plan rename, including whole sweeps."""
    pairs: dict[ResourceKey, ResourceKey] = {}
    for step in steps:
        if step.verb != Verb.RESOURCE_MOVE:
            continue
        kind, name = step.resource
        pairs[ResourceKey(kind, step.arguments["from"])] = step.resource
        if sweep := step.arguments["sweep"]:
            pairs[ResourceKey(kind, sweep)] = ResourceKey(kind, split_element(name)[0])
    return Renames(pairs)


def _of_the_absent(desired: Desired, live: Live) -> tuple[Override, ...]:
    """Rename the targets of overrides also where no resource has the name: a stopped run starts under no other name."""
    if not live.overrides:
        return ()
    named = {*live.resources}
    named.update(ResourceKey(key.kind, row.parent) for key, row in live.resources.items())
    renames = Renames(
        {
            before: after
            for before, after in desired.moved
            if before not in named and after not in named
        }
    )
    return tuple(replace(one, target=_target(one.target, renames, {})) for one in live.overrides)


def _effective(
    desired: Desired, live: Live
) -> tuple[dict[ResourceKey, ResourceKey], tuple[tuple[ResourceKey, ResourceKey], ...]]:
    """Rows that are renamed, and moves that cannot be made, each by the earlier name."""
    renames = Renames(dict(desired.moved))
    # A row with an earlier name is no longer declared, so it is not one of the unchanged rows.
    rows = changed_rows(live.resources)
    pairs: dict[ResourceKey, ResourceKey] = {}
    stuck: list[tuple[ResourceKey, ResourceKey]] = []
    taken: set[ResourceKey] = set()
    # From the end: of a chain of renames, the row that is furthest along is the one that is meant.
    order = {before: number for number, (before, _) in enumerate(desired.moved)}
    for key in sorted(rows, key=lambda one: (-_place(one, order), one)):
        after = renames.of(key)
        if after == key:
            continue
        there = rows.get(after)
        gives_way = after not in live.resources or (there is not None and there.archived)
        if after in taken or not gives_way:
            if not rows[key].archived:
                stuck.append((key, after))
            continue
        taken.add(after)
        pairs[key] = after
    return pairs, tuple(sorted(stuck))


def _sweeps(
    desired: Desired, pairs: Mapping[ResourceKey, ResourceKey]
) -> dict[ResourceKey, ResourceKey]:
    """Return the sweeps that are renamed as a whole: they have no row, but other documents refer to them."""
    parents = {ResourceKey(key.kind, split_element(key.name)[0]) for key in pairs}
    return {before: after for before, after in desired.moved if before in parents}


def _place(key: ResourceKey, order: Mapping[ResourceKey, int]) -> int:
    parent = ResourceKey(key.kind, split_element(key.name)[0])
    return order.get(key, order.get(parent, -1))


def _documented(row: LiveResource, renames: Renames) -> LiveResource:
    """The row with new names in its documents; itself where none is mentioned."""
    if row.run is not None and (earlier := row.run.earlier) is not None:
        text = _renamed_text(row.key.kind, earlier.document, renames)
        if text is not earlier.document:
            row = replace(row, run=replace(row.run, earlier=replace(earlier, document=text)))
    if row.run is not None and row.run.executed:
        text = _renamed_text(row.key.kind, row.run.executed, renames)
        if text is not row.run.executed:
            row = replace(row, run=replace(row.run, executed=text))
    if not renames.may_be_in(row.document):
        return row
    document = row.parsed
    renamed = rename_references(row.key.kind, document, renames)
    if renamed is document:
        return row
    digest, execution_digest = digests_of(row.key.kind, renamed)
    return replace(
        row,
        document=json.dumps(renamed),
        # A row without a digest is one that was never made in whole, and stays so.
        digest=digest if row.digest else "",
        execution_digest=execution_digest if row.digest else "",
        own_digest=digest if row.own_digest == row.digest else row.own_digest,
    )


def _renamed_text(kind: str, document: str, renames: Renames) -> str:
    if not renames.may_be_in(document):
        return document
    return json.dumps(rename_references(kind, json.loads(document), renames))


def _called(row: LiveResource, key: ResourceKey) -> LiveResource:
    if row.key == key:
        return row
    parent, element = split_element(key.name)
    return replace(row, key=key, parent=parent if element else "", element=element)


def _hosts(live: Live, renames: Renames) -> dict[str, str]:
    """New names of the hosts that are called by their fleet and number."""
    found = {}
    for one in live.instances:
        fleet = renames.name("fleet", one.fleet)
        if fleet != one.fleet and one.name == f"{one.fleet}-{one.number}":
            found[one.name] = f"{fleet}-{one.number}"
    return found


def _target(target: str, renames: Renames, hosts: Mapping[str, str]) -> str:
    kind, slash, name = target.partition("/")
    if kind == "host":
        return f"host/{hosts.get(name, name)}"
    return str(renames.of(ResourceKey(kind, name))) if slash else target


# -- as changes of a plan --------------------------------------------------------------------


def add_moves(draft: PlanDraft) -> None:
    """Give each renamed row its step, before all other steps of its resource."""
    if not draft.moves.before:
        return
    own, pairs = _own_digests(draft), _replacements(draft)
    for after, before in draft.moves.before.items():
        row = draft.live.resources[after]
        if draft.is_left_alone(after, row.parent):
            continue
        step = make_step(
            Verb.RESOURCE_MOVE,
            after,
            {
                "from": before.name,
                "parent": row.parent,
                "element": row.element,
                "sweep": _sweep(draft, before),
                "own_digests": {},
            },
        )
        key = after if after in draft.changes or after in draft.held else pairs.get(after, after)
        if key in draft.changes:
            draft.changes[key] = _behind(draft.changes[key], step, before)
        elif key in draft.held:
            held = draft.held[key]
            draft.held[key] = replace(held, change=_behind(held.change, step, before))
        elif not row.archived:
            draft.add(Proposal(_renamed(row, step, before)))
    _tell_own_digests(draft, own)


def _sweep(draft: PlanDraft, before: ResourceKey) -> str:
    """The sweep that is renamed as a whole with this element in it, by its earlier name."""
    parent, element = split_element(before.name)
    declared = dict(draft.desired.moved)
    is_whole = element and before not in declared and ResourceKey(before.kind, parent) in declared
    return parent if is_whole else ""


def _replacements(draft: PlanDraft) -> dict[ResourceKey, ResourceKey]:
    """Of pairs: the key of the change, by the row that goes."""
    changes = (*draft.changes.values(), *(held.change for held in draft.held.values()))
    return {draft.row_key(change): change.key for change in changes if change.replaces}


def _behind(change: Change, move: Step, before: ResourceKey) -> Change:
    steps = tuple(replace(step, needs=(*step.needs, move.key)) for step in change.steps)
    return replace(
        change,
        steps=(move, *steps),
        reasons=(*change.reasons, Reason.MOVED),
        moved_from=before.name,
    )


def _renamed(row: LiveResource, step: Step, before: ResourceKey) -> Change:
    change = propose_change_of_row(row, Action.UPDATE, Reason.MOVED, step).change
    return replace(change, moved_from=before.name)


def _own_digests(draft: PlanDraft) -> dict[str, str]:
    """
    Return the own digests of rows that inherit, where only names in them change.

    The whole document does not tell them, and with an outdated one the next change of a base would count as a change of the
    document itself, and run it again.
    """
    found: dict[str, str] = {}
    for key in sorted(draft.moves.mentioning):
        declared, row = draft.wanted.get(key), draft.live.resources[key]
        if declared is not None and declared.digest == row.digest:
            found[str(key)] = declared.own_digest
    return found


def _tell_own_digests(draft: PlanDraft, own: Mapping[str, str]) -> None:
    """Put them into the first renaming of the plan; all are carried out as one."""
    for key in sorted(draft.changes) if own else ():
        first, *others = draft.changes[key].steps
        if first.verb == Verb.RESOURCE_MOVE:
            said = replace(first, arguments={**first.arguments, "own_digests": dict(own)})
            draft.changes[key] = replace(draft.changes[key], steps=(said, *others))
            return


def hold_while_starting(draft: PlanDraft) -> None:
    """
    Block renames while a run that they concern is being started: the request to its host contains the name.

    Two different requests for one job are a conflict for the host.
    """
    starting = sorted(
        row.key
        for row in changed_rows(draft.present).values()
        if row.run is not None
        and row.run.state in _STARTING
        and (row.key in draft.moves.before or row.key in draft.moves.mentioning)
    )
    if not starting:
        return
    renamed = [key for key in draft.changes if draft.changes[key].moved_from]
    for key in renamed:
        draft.hold(
            key,
            HeldBy.RUNNING_WORK,
            f"{starting[0]} {BEING_STARTED}",
            "plan again once it is running",
        )


def hold_moved_nowhere(draft: PlanDraft) -> None:
    """
    Block the removal of a resource that `moved:` renames to a name which no document declares.

    The new name is mistyped, or the document was removed and the entry forgotten: only a person knows.
    """
    entries = dict(draft.desired.moved) if draft.moves.before else {}
    if not entries:
        return
    declared = {*draft.wanted, *draft.desired.removed}
    declared |= {ResourceKey(key.kind, one.parent) for key, one in draft.wanted.items()}
    for after, before in sorted(draft.moves.before.items()):
        entry = (
            before if before in entries else ResourceKey(before.kind, split_element(before.name)[0])
        )
        target = entries.get(entry)
        if target is None or {after, target} & declared or after not in draft.changes:
            continue
        draft.hold(
            after,
            HeldBy.DEPENDENCY,
            f"`moved:` says that {entry} is {target}, which no document declares",
            f"declare {target}, or remove the entry; then {entry} is removed",
        )


def stuck_warnings(moves: Moves) -> Sequence[str]:
    return tuple(
        f"{before} was not renamed, because {after} exists already. It is removed, because the"
        " configuration no longer declares it."
        for before, after in moves.stuck
    )


# Which removed element of a sweep an added one takes the place of.
# Changing one value of a matrix removes elements and adds as many; shown as pairs, the plan says
# what changed and not only what came and went. Nearest are the two that share most parameters;
# among equals the order of names decides, so that the same trees give the same pairs.

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
    documents = [(row, row.parsed) for row in sweep.removed]
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

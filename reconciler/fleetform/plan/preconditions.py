"""
What must still hold when a plan is carried out.

A plan pins what it touches and nothing else: scheduling goes on meanwhile, and an unrelated
change does not make it stale.
"""

from __future__ import annotations

from fleetform.model.at_work import AtWork
from fleetform.model.mounts import mounted_volumes
from fleetform.model.plan import ARCHIVED, Change, Predicate
from fleetform.plan.draft import Sheet
from fleetform.plan.impact import ends_with, hosts_ended
from fleetform.plan.phase import documents_of
from fleetform.spec.canonical import canonical_json
from fleetform.spec.desired import ResourceKey


def predicates_of(sheet: Sheet) -> tuple[Predicate, ...]:
    """The ledger first, then by key of the change."""
    found: list[Predicate] = []
    # Before the first apply there is no ledger to name; that its resources are absent says all.
    if sheet.live.ledger_id:
        found.append(Predicate("ledger", None, f"{sheet.live.ledger_id}/{sheet.live.epoch}"))
    if any(_is_judged(key, change) for key, change in sheet.changes.items()):
        environment = ResourceKey("environment", sheet.desired.environment.name)
        found.append(Predicate("rules", environment, canonical_json(sheet.rules.document())))
    goes = any(key.kind == "volume" and _lets_go(one) for key, one in sheet.changes.items())
    stopped = _users_stopped(sheet) if goes else {}
    for key in sorted(sheet.changes):
        if key.kind == "environment":
            continue  # Rules have no row of their own; they are pinned by what they say.
        change = sheet.changes[key]
        row_key = sheet.row_key(change)
        # The ledger knows it by the name that it had when it was read.
        known_as = sheet.moves.before.get(row_key, row_key)
        if change.uid:
            found.append(Predicate("generation", known_as, str(change.generation)))
        if known_as != row_key:
            # A tombstone that has this name gives way.
            found.append(Predicate("absent", row_key, ARCHIVED))
        if not change.uid or change.replaces:
            found.append(Predicate("absent", key))
        if row_key in sheet.not_started:
            found.append(Predicate("run-not-started", known_as))
        found += [
            Predicate("left", key, step.arguments["returns"])
            for step in change.steps
            # What the same change lets go is pinned by its row.
            if step.arguments.get("returns", change.uid) != change.uid
        ]
        if key.kind == "fleet" and (change.destructive or _lets_go(change)):
            found.append(Predicate("at-work", known_as, _at_work(sheet, change, known_as).text))
        if key.kind == "volume" and _lets_go(change):
            users = canonical_json(sorted(stopped.get(key.name, ())))
            found.append(Predicate("unattached", known_as, users))
    return tuple(found)


_LETS_GO = frozenset({"fleet.forget", "volume.forget", "volume.remove", "volume.snapshot"})


def _lets_go(change: Change) -> bool:
    """Tell whether it takes something from under whoever uses it, destructive or not."""
    return any(step.verb in _LETS_GO for step in change.steps)


def _users_stopped(sheet: Sheet) -> dict[str, set[str]]:
    """By volume: runs that the plan ends before it goes, by the names that the ledger knows."""
    found: dict[str, set[str]] = {}
    for change in sheet.changes.values():
        for step in change.steps:
            if step.verb == "run.stop":
                known_as = sheet.moves.before.get(step.resource, step.resource)
                for document in documents_of(sheet.live.resources[step.resource]):
                    for volume in mounted_volumes(document):
                        found.setdefault(volume, set()).add(known_as.name)
    return found


def _at_work(sheet: Sheet, change: Change, known_as: ResourceKey) -> AtWork:
    """Who would end with it, by the names that the ledger knows; whoever begins later was not told."""
    runs = {ResourceKey("run", one.run) for one in sheet.live.work if ends_with(sheet, change, one)}
    return AtWork(
        frozenset(sheet.known_as(run).name for run in runs),
        frozenset(_earlier(host, change.key, known_as) for host in hosts_ended(sheet, change)),
    )


def _earlier(host: str, fleet: ResourceKey, known_as: ResourceKey) -> str:
    """Hosts that are called by their fleet and number are renamed with it."""
    number = host.removeprefix(f"{fleet.name}-")
    return f"{known_as.name}-{number}" if number != host and number.isdigit() else host


def _is_judged(key: ResourceKey, change: Change) -> bool:
    """
    Tell whether rules decided about it, or are what it changes.

    Rules that somebody has tightened since hold for a plan that is still to be entered; all other
    plans may be applied under any.
    """
    return change.destructive or key.kind == "environment"

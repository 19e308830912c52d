"""
Trees and ledgers to which much has happened, each from a number.

The promises beside it draw one thing at a time. Here are renamings, earlier runs of a name, what was
let go, imports, steps that failed, overrides and parts of a plan, all at once: faults of a planner
and of its second reader have lain where several of them meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from fleetform.model.live import EarlierRun, Live, LiveResource, Work
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Permissions, Scope
from fleetform.model.rollout_status import RolloutStatus
from fleetform.model.run import RunState
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.model.volume import RetainedData
from fleetform.plan.scope import idle_addresses, with_new_names
from fleetform.spec.desired import Declared, Desired, ResourceKey, Rules
from fleetform.spec.renaming import Renames, rename_references
from unit.plan.trees import NOW_MS, declare, element, fleet, ledger, row, task, tree, volume

__all__ = ["History", "history"]

FLEETS, VOLUMES, RUNS = ("f", "g"), ("v", "w"), ("a", "b", "c")
# To a name that may be there, or was there, and to one that never was.
RENAMINGS = (
    *(("fleet", "f", name) for name in ("g", "h")),
    *(("volume", "v", name) for name in ("w", "u")),
    *(("run", "a", name) for name in ("b", "n")),
    ("run", "b", "c"),
    ("run", "s", "t"),
)
ADDRESSES = (
    *("run/a", "run/b", "run/c", "run/s", "run/*"),
    *("fleet/f", "fleet/g", "fleet/*", "volume/v", "volume/w"),
)
BEGUN = {RunState.PREPARING, RunState.RUNNING, RunState.FINISHING}

Tree = dict[ResourceKey, Declared]


class History(NamedTuple):
    """What a plan is made from."""

    desired: Desired
    live: Live
    permissions: Permissions
    scope: Scope


class _Source(Random):
    """Chances and choices; the same number gives the same."""

    def chance(self, share: float) -> bool:
        return self.random() < share

    def some(self, names: Iterable[str], share: float) -> list[str]:
        return [name for name in names if self.chance(share)]

    def fields(self, table: Mapping[str, tuple[float, list[Any]]]) -> dict[str, Any]:
        return {
            name: self.choice(values)
            for name, (share, values) in table.items()
            if self.chance(share)
        }


def history(number: int) -> History:
    """Draw what was there, what became of it, and what is wanted now."""
    source = _Source(number)
    before, after = _declared(source), _declared(source)
    if source.chance(0.4):
        # Most of a tree is as it was.
        after |= {key: one for key, one in before.items() if source.chance(0.5)}
    live = _live(source, _whole(before))
    moved = _moved(source) if source.chance(0.5) else {}
    wanted = _whole(_renamed(_whole(after), moved))
    desired = replace(
        tree(*wanted.values(), rules=_rules(source)),
        moved=tuple(moved.items()),
        removed=_removed(source, before, wanted, moved),
        imports=tuple(key for key in wanted if key.kind != "run" and source.chance(0.2)),
    )
    permissions = Permissions(
        allow_destroy=source.chance(0.6),
        allow_restart=source.chance(0.3),
        allow_deletes=source.choice([None, 0, 100]),
        destroy=source.chance(0.05),
    )
    scope = Scope(*(tuple(source.some([source.choice(ADDRESSES)], 0.2)) for _ in range(3)))
    # No command takes an address that means nothing, nor any to remove everything.
    if permissions.destroy or idle_addresses(desired, live, scope):
        scope = Scope()
    return History(desired, live, permissions, with_new_names(desired, scope))


# -- trees -----------------------------------------------------------------------------------


_FLEET = {
    "update": (0.5, [{"strategy": one} for one in ("drain", "recreate", "surge")]),
    "sharing": (0.3, ["blocks"]),
    "protect": (0.1, [True]),
}
_VOLUME = {
    "deletion_policy": (0.7, ["delete", "snapshot", "retain"]),
    "protect": (0.1, [True]),
}
_RUN = {
    "on_change": (0.4, ["hold", "after-finish", "restart"]),
    "state": (0.2, ["stopped"]),
    "rerun": (0.2, [1, 2]),
    "protect": (0.1, [True]),
    "priority": (0.3, [1, 2]),
    "commands": (1.0, [["x"], ["y"]]),
}


def _declared(source: _Source) -> Tree:
    fleets = source.some(FLEETS, 0.7)
    volumes = source.some(VOLUMES, 0.6) if fleets else []
    paths = source.sample([source.choice(["/p", "/p/in"]), "/q"], 2)
    found = [fleet(one, nodes=source.choice([1, 2]), **source.fields(_FLEET)) for one in fleets]
    found += [
        volume(one, source.choice(fleets), path, **source.fields(_VOLUME))
        for one, path in zip(volumes, paths, strict=False)
    ]
    if source.chance(0.4):
        found += [element("s", lr=lr) for lr in source.sample([1, 2, 3], 2)]
    for name in source.some(RUNS, 0.6):
        fields = source.fields(_RUN)
        if fleets and source.chance(0.5):
            fields["fleets"] = [source.choice(fleets)]
        if volumes and source.chance(0.5):
            fields["volumes"] = [{"name": source.choice(volumes), "path": "/in"}]
        if source.chance(0.2):
            # Of an order: nobody waits for himself.
            fields["depends_on"] = {
                "runs": [{"run": source.choice(["s", *RUNS[: RUNS.index(name)]])}]
            }
        found.append(task(name, **fields))
    return {one.key: one for one in found}


def _whole(declared: Tree) -> Tree:
    """What a tree can declare of this: nothing that mentions what it lacks, nor two in one place."""
    found: Tree = {}
    places: list[str] = []
    for key in sorted(declared, key=lambda one: (one.kind != "fleet", one.kind != "volume", one)):
        one = declared[key]
        waited = [entry["run"] for entry in one.document.get("depends_on", {}).get("runs", ())]
        names = [
            sorted(
                other.name
                for other in declared
                if other.name == run or declared[other].parent == run
            )
            for run in waited
        ]
        path = str(one.document["path"]) if key.kind == "volume" else ""
        meets = any(
            f"{path}/".startswith(f"{p}/") or f"{p}/".startswith(f"{path}/") for p in places
        )
        if (
            not all(other in found for other in one.references)
            or not all(names)
            or (path and meets)
        ):
            continue
        places += [path] if path else []
        found[key] = replace(one, upstream=tuple(sorted({name for some in names for name in some})))
    # Whom it waits for may just have been left out.
    kept = {
        key: one
        for key, one in found.items()
        if all(ResourceKey("run", name) in found for name in one.upstream)
    }
    return found if len(kept) == len(found) else _whole(kept)


def _moved(source: _Source) -> dict[ResourceKey, ResourceKey]:
    """Entries of `moved:`, of which none renames what another one names."""
    found: dict[ResourceKey, ResourceKey] = {}
    for kind, before, after in source.sample(RENAMINGS, source.choice([1, 2, 3])):
        pair = (ResourceKey(kind, before), ResourceKey(kind, after))
        if not {*found, *found.values()} & {*pair}:
            found[pair[0]] = pair[1]
    return found


def _renamed(declared: Tree, moved: Mapping[ResourceKey, ResourceKey]) -> Tree:
    """The same by the new names; of two that have one name then, the one that was renamed."""
    renames = Renames(moved)
    found: Tree = {}
    for key in sorted(declared, key=lambda one: renames.of(one) != one):
        one, now = declared[key], renames.of(key)
        document = rename_references(key.kind, one.document, renames)
        parent = now.name.partition("[")[0] if one.element else ""
        found[now] = declare(key.kind, now.name, document, parent=parent, element=one.element)
    return found


def _removed(
    source: _Source, before: Tree, wanted: Tree, moved: Mapping[ResourceKey, ResourceKey]
) -> tuple[ResourceKey, ...]:
    """Something that is declared no more, to be let go as it is; a sweep as a whole."""
    there = {ResourceKey(key.kind, one.parent or key.name) for key, one in before.items()}
    there -= {ResourceKey(key.kind, one.parent or key.name) for key, one in wanted.items()}
    there -= {*moved, *moved.values()}
    return (source.choice(sorted(there)),) if there and source.chance(0.3) else ()


# -- ledgers ---------------------------------------------------------------------------------


def _live(source: _Source, declared: Tree) -> Live:
    rows = [_row(source, declared[key]) for key in sorted(declared)]
    stop = Override(1, OverrideKind.STOP, source.choice(ADDRESSES[:5]), "why", "me", NOW_MS - 5)
    return replace(
        ledger(*rows, rules=_rules(source)),
        work=tuple(_work(one) for one in rows if _is_on(one, declared)),
        left=tuple(
            RetainedData(source.choice(VOLUMES), str(number) * 32, path)
            for number, path in enumerate(source.some(["/p", "/q"], 0.2))
        ),
        exchanging=dict.fromkeys(
            source.some([k.name for k in declared if k.kind == "fleet"], 0.3),
            RolloutStatus(2, 1, 1, 1),
        ),
        overrides=(stop,) if source.chance(0.2) else (),
    )


def _row(source: _Source, declared: Declared) -> LiveResource:
    """What an apply left, some of it only half done."""
    if declared.key.kind == "run":
        found = _run_row(source, declared)
    else:
        found = row(declared)
        if source.chance(0.1):
            found = replace(found, digest="", execution_digest="", own_digest="", state="failed")
    return replace(found, operation="op") if source.chance(0.05) else found


def _run_row(source: _Source, declared: Declared) -> LiveResource:
    state, archived = source.choice(list(RunState)), source.chance(0.15)
    if source.chance(0.2):
        document = source.choice([{"volumes": [{"name": "v", "path": "/in"}]}, {"fleets": ["f"]}])
        earlier = EarlierRun("e" * 32, json.dumps({"type": "task", **document}))
        return row(declared, RunState.PENDING, archived=archived, earlier=earlier)
    unknown = state is RunState.UNKNOWN and source.chance(0.5)
    return row(declared, state, archived=archived, **({"cause": NO_EVIDENCE} if unknown else {}))


def _is_on(one: LiveResource, declared: Tree) -> bool:
    if one.run is None or (one.run.state not in BEGUN and one.run.earlier is None):
        return False
    return ResourceKey("fleet", _fleet_of(one)) in declared


def _work(one: LiveResource) -> Work:
    name = _fleet_of(one)
    return Work(one.key.name, name, 1, 0, NOW_MS - 1000, 0, (f"{name}-0",))


def _fleet_of(one: LiveResource) -> str:
    assert one.run is not None
    document = one.document if one.run.earlier is None else one.run.earlier.document
    return str(json.loads(document).get("fleets", ["f"])[0])


def _rules(source: _Source) -> Rules:
    return Rules(allow_destroy=source.chance(0.3))

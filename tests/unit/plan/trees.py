"""Small trees and ledgers, and a model of carrying a plan out, for tests of plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, LiveResource, LiveRun
from fleetform.model.plan import WHOLE, Permissions, Plan, Scope, Step, outdated_by
from fleetform.model.run import FINAL, RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.canonical import digest
from fleetform.spec.desired import (
    Declared,
    Desired,
    Environment,
    Obstacle,
    ResourceKey,
    Rules,
    Unsupported,
)
from fleetform.spec.fields import EXECUTION_FIELDS

UID = "e" * 32
CONTAINER = Obstacle("not-supported", "image", "Containers are not supported yet.")
NOW_MS = 1_700_000_000_000


def declare(
    kind: str,
    name: str,
    document: Mapping[str, Any],
    *,
    own: Any = None,
    parent: str = "",
    element: str = "",
    upstream: Iterable[str] = (),
) -> Declared:
    """A declaration; `own` is what its own document says, where that is less than the whole."""
    execution = {
        field: document[field] for field in sorted(EXECUTION_FIELDS[kind]) if field in document
    }
    return Declared(
        key=ResourceKey(kind, name),
        type="task" if kind == "run" else kind,
        document=document,
        digest=digest(dict(document)),
        execution_digest=digest(execution if kind == "run" else dict(document)),
        own_digest=digest(dict(document) if own is None else own),
        parent=parent,
        element=element,
        references=tuple(_references(kind, document)),
        upstream=tuple(upstream),
    )


def _references(kind: str, document: Mapping[str, Any]) -> Iterable[ResourceKey]:
    if kind == "volume" and "fleet" in document:
        yield ResourceKey("fleet", document["fleet"])
    for name in document.get("fleets", ()):
        yield ResourceKey("fleet", name)
    for mount in document.get("volumes", ()) if kind == "run" else ():
        yield ResourceKey("volume", mount["name"])
    if kind == "run" and "queue" in document:
        yield ResourceKey("queue", document["queue"])


def task(name: str, *, own: Any = None, upstream: Iterable[str] = (), **document: Any) -> Declared:
    document = {"type": "task", "commands": ["true"], **document}
    return declare("run", name, document, own=own, upstream=upstream)


def element(parent: str, **matrix: Any) -> Declared:
    """One element of a sweep."""
    inside = ",".join(f"{key}={matrix[key]}" for key in sorted(matrix))
    document = {"type": "task", "commands": ["train"], "matrix": matrix}
    return declare("run", f"{parent}[{inside}]", document, parent=parent, element=inside)


def item(parent: str, index: int, **document: Any) -> Declared:
    """One element of an array."""
    document = {"type": "task", "commands": ["true"], "index": index, **document}
    return declare("run", f"{parent}[{index}]", document, parent=parent, element=str(index))


def fleet(name: str, *, nodes: int | Mapping[str, int] = 1, **document: Any) -> Declared:
    bounds = {"min": nodes, "target": nodes, "max": nodes} if isinstance(nodes, int) else nodes
    return declare("fleet", name, {"type": "fleet", "nodes": bounds, "local": {}, **document})


def volume(name: str, on: str = "local", path: str = "/data", **document: Any) -> Declared:
    return declare("volume", name, {"type": "volume", "fleet": on, "path": path, **document})


def queue(name: str, *fleets: str, **document: Any) -> Declared:
    leads = {"fleets": sorted(fleets)} if fleets else {}
    return declare("queue", name, {"type": "queue", **leads, **document})


def tree(
    *declared: Declared,
    rules: Rules | None = None,
    broken: Iterable[ResourceKey] = (),
    commit: str = "4f2a91c",
    unread: tuple[str, ...] = (),
    beyond: Iterable[Declared] = (),
    obstacle: Obstacle = CONTAINER,
) -> Desired:
    return Desired(
        environment=Environment("lab", UID, rules or Rules()),
        resources={one.key: one for one in sorted(declared, key=lambda one: one.key)},
        commit=commit,
        digest="tree",
        broken=frozenset(broken),
        unread=unread,
        beyond={
            one.key: Unsupported(one, (obstacle,))
            for one in sorted(beyond, key=lambda one: one.key)
        },
    )


def row(
    declared: Declared, state: RunState = RunState.DONE, *, archived: bool = False, **run: Any
) -> LiveResource:
    """The row that carrying out this declaration leaves; a run in `state`."""
    live_run = None
    if declared.key.kind == "run":
        live_run = LiveRun(state=state, **{"attempt": 1, **run})
    return LiveResource(
        key=declared.key,
        uid=digest(str(declared.key))[:32],
        generation=3,
        digest=declared.digest,
        execution_digest=declared.execution_digest,
        own_digest=declared.own_digest,
        document=json.dumps(declared.document),
        type=declared.type,
        archived=archived,
        protected=bool(declared.document.get("protect")),
        parent=declared.parent,
        element=declared.element,
        run=live_run,
    )


def ledger(
    *rows: LiveResource,
    rules: Rules | None = None,
    status: LedgerStatus = LedgerStatus.READY,
    notes: tuple[str, ...] = (),
) -> Live:
    return Live(
        environment_uid=UID,
        ledger_id="ledger-1",
        epoch=2,
        status=status,
        serial=7,
        resources={one.key: one for one in rows},
        rules=rules,
        notes=notes,
    )


def planned(desired: Desired, live: Live, *, scope: Scope = WHOLE, **permissions: Any) -> Plan:
    return make_plan(
        desired, live, permissions=Permissions(**permissions), scope=scope, now_ms=NOW_MS
    )


# -- carrying a plan out ---------------------------------------------------------------------


def carry_out(plan: Plan, live: Live) -> tuple[Live, list[str]]:
    """
    The ledger after every step, and the names of runs that were started, in order of steps.

    What is asked to stop has stopped when this returns, and what starts waits.
    """
    rows = dict(live.resources)
    rules = live.rules
    started: list[str] = []
    done: set[str] = set()
    waiting = list(plan.steps)
    while waiting:
        ready = [step for step in waiting if set(step.needs) <= done]
        assert ready, f"nothing is ready among {[step.key for step in waiting]}"
        for step in ready:
            if step.verb == "rules.set":
                rules = Rules(**step.arguments["rules"])
            else:
                _carry_out_step(step, rows, started)
        done.update(step.key for step in ready)
        waiting = [step for step in waiting if step.key not in done]
    gone = {step.resource.name for step in plan.steps if step.verb == "fleet.remove"}
    for work in live.work:
        key = ResourceKey("run", work.run)
        if work.fleet in gone and key in rows:
            rows[key] = _ended(rows[key])
    left = tuple(
        one
        for one in live.work
        if one.fleet not in gone
        and (there := rows.get(ResourceKey("run", one.run))) is not None
        and there.run is not None
        and there.run.state not in FINAL
    )
    return replace(live, resources=rows, rules=rules, serial=live.serial + 1, work=left), started


def _ended(old: LiveResource) -> LiveResource:
    """Its host has gone from under it."""
    assert old.run is not None
    over = old.run.state in FINAL or old.run.state is RunState.SUBMITTED
    return old if over else replace(old, run=replace(old.run, state=RunState.STOPPED))


_DROPS = frozenset(
    {
        "fleet.remove",
        "fleet.forget",
        "volume.remove",
        "volume.forget",
        "volume.snapshot",
        "run.forget",
        "queue.remove",
    }
)


def _carry_out_step(step: Step, rows: dict[ResourceKey, LiveResource], started: list[str]) -> None:
    key = step.resource
    old = rows.get(key)
    if step.verb in _DROPS:
        del rows[key]
    elif step.verb == "run.archive":
        rows[key] = replace(rows[key], archived=True, generation=rows[key].generation + 1)
    elif step.verb == "run.stop":
        run = rows[key].run
        assert run is not None
        state = run.state if run.state in FINAL else RunState.STOPPED
        rows[key] = replace(rows[key], run=replace(run, state=state))
    elif step.verb == "run.submit":
        assert old is None or old.run is None or old.run.state in FINAL or _queued(step, old)
        started.append(key.name)
        rows[key] = _row_of(step, old, LiveRun(RunState.SUBMITTED, 0))
    elif step.verb == "run.update":
        assert old is not None
        assert old.run is not None
        run = replace(old.run, stale=outdated_by(step))
        rows[key] = _row_of(step, old, run)
    else:
        rows[key] = _row_of(step, old, None if old is None else old.run)


def _queued(step: Step, old: LiveResource) -> bool:
    return bool(step.arguments["after_uid"] == old.uid)


def _row_of(step: Step, old: LiveResource | None, run: LiveRun | None) -> LiveResource:
    arguments = step.arguments
    mark = max(
        arguments["document"].get("rerun", 0),
        0 if old is None or old.run is None else old.run.rerun_mark,
    )
    return LiveResource(
        key=step.resource,
        uid=digest(str(step.resource))[:32] if old is None else old.uid,
        generation=1 if old is None else old.generation + 1,
        digest=arguments["digest"],
        execution_digest=arguments["execution_digest"],
        own_digest=arguments["own_digest"],
        document=json.dumps(arguments["document"]),
        type=arguments["type"],
        protected=arguments["protected"],
        parent=arguments.get("parent", ""),
        element=arguments.get("element", ""),
        run=None if run is None else replace(run, rerun_mark=mark),
    )

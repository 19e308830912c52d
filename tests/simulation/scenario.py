"""
What a seed declares: a fleet or two, and runs that depend, repeat, come in gangs and fail.

Resources are made in the canonical form that loading a tree gives; everything after that is
the product's own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetform.agents.protocol.messages import StartJob
from fleetform.spec.canonical import digest
from fleetform.spec.desired import Declared, Desired, Environment, ResourceKey, Rules
from simulation.host import Script

ENVIRONMENT_UID = "5" * 32
NODES_MAX = 3
LONG_SECONDS = 90
"""How long runs with `on_silence` take at most: longer than most of what happens to their hosts."""

EXECUTION = ("commands", "env", "nodes", "fleets", "resources", "index")


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    Attributes:
        desired: The first declaration, then what it is edited to, in order.
        hosts: Names of the instances that the fleet may ever have, with their CPU in millicores.
        scripts: What each run does, by name: seconds, and exit codes of its attempts; the last
            code holds for all that follow.
    """

    desired: tuple[Desired, ...]
    hosts: Mapping[str, int]
    scripts: Mapping[str, tuple[float, tuple[int, ...]]]

    def script(self, job: StartJob) -> Script:
        seconds, codes = self.scripts[job.run_name]
        attempt = min(job.key.attempt, len(codes)) - 1
        return Script(seconds, codes[attempt])


def make_scenario(source: random.Random) -> Scenario:
    nodes = source.randint(1, NODES_MAX)
    cpu = source.choice([2000, 4000])
    fleet = {"nodes": _exactly(nodes), "local": {"cpu": cpu, "memory": 1 << 34}}
    hosts = {f"pool-{number}": cpu for number in range(NODES_MAX)}
    scripts: dict[str, tuple[float, tuple[int, ...]]] = {}
    runs: dict[str, dict[str, Any]] = {}
    for number in range(source.randint(2, 7)):
        name = f"run-{number}"
        runs[name] = _run(source, list(runs), nodes, cpu)
        longest = LONG_SECONDS if "on_silence" in runs[name] else 8
        scripts[name] = (source.uniform(0.05, longest), _codes(source))
    first = make_desired(fleet, runs)
    return Scenario((first, *_edits(source, fleet, runs)), hosts, scripts)


def _run(source: random.Random, earlier: list[str], nodes: int, cpu: int) -> dict[str, Any]:
    millicores = source.choice([500, 1000, 2000])
    document: dict[str, Any] = {
        "type": "task",
        "commands": ["true"],
        "resources": {"cpu": {"min": millicores, "max": millicores}},
        "fleets": ["pool"],
    }
    if nodes > 1 and source.random() < 0.4:
        document["nodes"] = source.randint(2, nodes)
    if earlier and source.random() < 0.4:
        when = source.choice(["succeeded", "finished", "started", "failed"])
        document["depends_on"] = {"runs": [{"run": source.choice(earlier), "when": when}]}
    if source.random() < 0.7:
        document["retry"] = {
            "on": ["error", "interruption", "node-failure"],
            "max_attempts": source.randint(2, 6),
        }
    if source.random() < 0.3:
        # Less than the minute that documents may say: the host ends many of them.
        document["on_silence"] = {"action": "stop", "after": source.choice([5, 20, 40])}
        document["stop_duration"] = source.choice([0, 3])
    if source.random() < 0.3:
        document["priority"] = source.randint(0, 100)
    return document


def _codes(source: random.Random) -> tuple[int, ...]:
    if source.random() < 0.6:
        return (0,)
    return tuple(source.choice([0, 1]) for _ in range(source.randint(1, 3)))


def _edits(
    source: random.Random, fleet: dict[str, Any], runs: dict[str, dict[str, Any]]
) -> list[Desired]:
    """Change the fleet's size, a priority, remove a run that nobody waits for, or change nothing."""
    edits = []
    current = {name: dict(document) for name, document in runs.items()}
    for _ in range(source.randint(0, 2)):
        name = source.choice(sorted(current))
        if source.random() < 0.3:
            fleet = {**fleet, "nodes": _exactly(source.randint(1, NODES_MAX))}
        elif source.random() < 0.5:
            current[name]["priority"] = source.randint(0, 100)
        elif len(current) > 1 and not any(_waits_for(one, name) for one in current.values()):
            del current[name]
        edits.append(make_desired(fleet, current))
    return edits


def _exactly(nodes: int) -> dict[str, int]:
    return {"min": nodes, "target": nodes, "max": nodes}


def _waits_for(document: Mapping[str, Any], name: str) -> bool:
    return any(one["run"] == name for one in document.get("depends_on", {}).get("runs", ()))


def make_desired(fleet: dict[str, Any], runs: Mapping[str, dict[str, Any]]) -> Desired:
    """Declare the fleet `pool` and runs, by their canonical documents."""
    declared = [_declared("fleet", "fleet", "pool", fleet)]
    for name, document in runs.items():
        upstream = tuple(one["run"] for one in document.get("depends_on", {}).get("runs", ()))
        declared.append(
            _declared(
                "run",
                "task",
                name,
                dict(document),
                references=(ResourceKey("fleet", "pool"),),
                upstream=upstream,
            )
        )
    resources = {one.key: one for one in sorted(declared, key=lambda one: one.key)}
    environment = Environment("simulated", ENVIRONMENT_UID, Rules())
    return Desired(environment, resources)


def _declared(
    kind: str,
    type_: str,
    name: str,
    document: dict[str, Any],
    *,
    references: tuple[ResourceKey, ...] = (),
    upstream: tuple[str, ...] = (),
) -> Declared:
    whole = digest(document)
    execution = {key: document[key] for key in EXECUTION if key in document}
    return Declared(
        key=ResourceKey(kind, name),
        type=type_,
        document=document,
        digest=whole,
        execution_digest=digest(execution) if kind == "run" else whole,
        own_digest=whole,
        references=references,
        upstream=upstream,
    )

"""What is asked last: do world, ledger and tree agree, and does the history tell all of it?"""

from __future__ import annotations

from fleetform.model.plan import Action, HeldBy, Plan
from fleetform.spec.desired import Desired, ResourceKey
from simulation.apply.process import Room
from simulation.apply.rule import Rule

__all__ = ["ask_last"]

_MAY_STAY_HELD = frozenset({HeldBy.PROTECTION, HeldBy.DEPENDENCY})
"""
With every permission given, only a protection holds, and what follows from one; and a run of which
nobody knows whether it ran, until a person says that it shall.
"""


def ask_last(room: Room, plan: Plan, tree: Desired) -> None:
    """`plan` is of `tree` and of what there is now."""
    _ask_plan(room, plan)
    _ask_world(room, plan)
    _ask_tree(room, plan, tree)
    _ask_history(room)


def _ask_plan(room: Room, plan: Plan) -> None:
    wanted = [f"{one.action} of {one.key}" for one in plan.changes]
    room.judge.require(Rule.CONVERGED, not wanted, f"the last plan wants {wanted}")
    unknown = room.disk.ask("SELECT name FROM runs WHERE state = 'unknown'") or _on_hosts_gone(room)
    stuck = [
        f"{one.change.key} by {one.by}: {one.detail}"
        for one in plan.held
        if one.by not in _MAY_STAY_HELD
        and not (unknown and one.by in {HeldBy.RUNNING_WORK, HeldBy.ENDING})
    ]
    room.judge.require(Rule.CONVERGED, not stuck, f"held are {stuck}")


def _on_hosts_gone(room: Room) -> list[str]:
    """Instances with jobs that are no more: of what was at work there nobody can say that it ended."""
    rows = room.disk.ask(
        "SELECT DISTINCT instance_uid FROM jobs WHERE instance_uid <> '' AND state <> 'finished'"
    )
    return [uid for (uid,) in rows if uid not in room.machine.hosts]


def _ask_world(room: Room, plan: Plan) -> None:
    judge, disk, machine = room.judge, room.disk, room.machine
    rows = disk.ask("SELECT uid, fleet FROM instances WHERE state <> 'terminated'")
    # Of a fleet that is to go and may not, a host that is gone is told of and not made again.
    waiting = {str(one.change.key) for one in plan.held if one.change.action is Action.DELETE}
    worn = waiting & {one["resource"] for one in plan.annex["drift"]}
    known = {uid for uid, fleet in rows if uid in machine.hosts or f"fleet/{fleet}" not in worn}
    there = set(machine.hosts) - judge.instances.let_go
    judge.require(
        Rule.WORLD,
        known == there,
        f"instances {_short(there - known)} are unknown, {_short(known - there)} are missing",
    )
    rows = disk.ask(
        "SELECT uid, document ->> 'path', name FROM resources WHERE kind = 'volume' AND archived = 0"
    )
    # Whose data is gone and what is held for another reason, is told of and left alone.
    told = _told_as_gone(plan)
    volumes = {uid: path for uid, path, name in rows if f"volume/{name}" not in told}
    left_alone = {path for _, path, name in rows if f"volume/{name}" in told}
    for path, mark in machine.volumes.items():
        kept = path in judge.record.left_paths | left_alone
        # One that was made at a path and failed is made at another: both bear its mark.
        found = volumes.get(mark.volume_uid) == path
        if found:
            del volumes[mark.volume_uid]
        judge.require(Rule.WORLD, kept or found, f"volume {path} is nobody's")
    missing = sorted(volumes.values())
    judge.require(Rule.WORLD, not missing, f"volumes {missing} are missing")
    running = sorted(judge.executions.alive().values())
    judge.require(Rule.WORLD, not running, f"{running} run")


def _ask_tree(room: Room, plan: Plan, tree: Desired) -> None:
    judge = room.judge
    held = {one.change.key for one in plan.held}
    rows = {
        ResourceKey(kind, name): (digest, archived)
        for kind, name, digest, archived in room.disk.ask(
            "SELECT kind, name, digest, archived FROM resources"
        )
    }
    for key, declared in tree.resources.items():
        if key not in held:
            judge.require(
                Rule.TREE, rows.get(key) == (declared.digest, 0), f"{key} is {rows.get(key)}"
            )
    for key, (_, archived) in rows.items():
        gone = bool(archived) or key in held or key in tree.resources
        judge.require(Rule.TREE, gone, f"{key} is still there")
    for key, declared in tree.resources.items():
        if key.kind == "fleet" and key not in held:
            _ask_hosts(room, key.name, declared.document["nodes"]["target"])
    _ask_exchanged(room)
    for name, state in room.disk.ask("SELECT name, state FROM resources WHERE kind = 'fleet'"):
        # One that is to go and may not is not made whole before.
        may_be = state == "present" or ResourceKey("fleet", name) in held
        judge.require(Rule.TREE, may_be, f"fleet {name} is {state}")


def _ask_exchanged(room: Room) -> None:
    """Whom somebody has asked for others of, has gone."""
    left = (room.judge.instances.to_go & room.machine.hosts.keys()) - room.judge.instances.let_go
    room.judge.require(Rule.TREE, not left, f"hosts {_short(left)} were to be replaced")


def _ask_hosts(room: Room, fleet: str, nodes: int) -> None:
    """Each place has one host, of what hosts of the fleet are made from now."""
    rows = room.disk.ask(
        "SELECT i.number, s.outputs ->> 'template' IN (NULL, i.template_digest) FROM instances i"
        " JOIN resources s ON s.kind = 'fleet' AND s.name = i.fleet"
        " WHERE i.fleet = ? AND i.state = 'ready' ORDER BY i.number",
        (fleet,),
    )
    numbers = [number for number, _ in rows]
    room.judge.require(Rule.TREE, numbers == [*range(nodes)], f"{fleet} has hosts {numbers}")
    outdated = [number for number, is_current in rows if is_current == 0]
    room.judge.require(Rule.TREE, not outdated, f"{fleet} has hosts {outdated} of another template")


def _ask_history(room: Room) -> None:
    open_ = room.disk.ask(
        "SELECT uid, state FROM applies WHERE state = 'running' OR finished_at_ms IS NULL"
    )
    room.judge.require(Rule.HISTORY, not open_, f"applies {open_} are open")
    lost = room.disk.ask(
        "SELECT key FROM operations o WHERE state IN ('planned', 'intended') OR state = 'done'"
        " AND uid = '' AND verb IN ('fleet.make', 'volume.make')"
    )
    room.judge.require(Rule.HISTORY, not lost, f"operations {lost} are open")
    known = {uid for (uid,) in room.disk.ask("SELECT uid FROM applies")}
    for uid in room.judge.entries.of:
        room.judge.require(Rule.HISTORY, uid in known, f"apply {uid[:8]} is not in the history")
    marks = room.disk.ask("SELECT kind, name FROM resources WHERE operation <> ''")
    room.judge.require(Rule.HISTORY, not marks, f"{marks} are marked as under way")


def _told_as_gone(plan: Plan) -> set[str]:
    held = {str(one.change.key) for one in plan.held}
    lost = {"directory", "mark"}
    return held & {one["resource"] for one in plan.annex["drift"] if one["path"] in lost}


def _short(uids: set[str]) -> list[str]:
    return sorted(uid[:8] for uid in uids)

"""
The judge of an apply: sees what is entered, begun and written down, and what the world does.

It keeps its own record of what was applied and by which rules, and compares everything with
that. Nothing of it is read by what it judges.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from fleetform.model.plan import Change, Permissions, Plan, Step
from fleetform.model.ports import Accepted
from fleetform.simulate.apply.above import Above, Override
from fleetform.simulate.apply.executions import Executions
from fleetform.simulate.apply.ports import Disk
from fleetform.simulate.apply.record import GONE, Applied, Record, mentions
from fleetform.simulate.apply.rule import Rule
from fleetform.simulate.witness import Witness
from fleetform.spec.dataclass import dataclass
from fleetform.spec.desired import ResourceKey, Rules

__all__ = ["Judge", "Snapshot"]

_ENDS = GONE | {"run.archive", "run.submit"}
"""After one of these, what the name stood for is gone, or another thing has it."""

_KNOWN = {
    "made": "SELECT 1 FROM instances WHERE uid = ?",
    "released": "SELECT 1 FROM instances WHERE uid = ? AND state IN ('terminating', 'terminated')",
    "volume": "SELECT 1 FROM operations WHERE uid = ?",
    "run": "SELECT 1 FROM jobs WHERE run_uid = ? AND state NOT IN ('waiting', 'reserved')",
}
"""How a copy shows that it knows of something that was done: then to take it up again is right."""


@dataclass(slots=True)
class _Apply:
    """
    An entered plan: who allowed what, and what was known when it was entered.

    By the rules of that moment it is judged; `alive` are the uids of what ran then, or had ended
    and nobody had said so yet.
    """

    digest: str
    permissions: Permissions
    changes: Mapping[str, Change]
    rules: Rules
    alive: frozenset[str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the judge believed when a copy of the ledger was made."""

    record: Record
    to_go: frozenset[str]
    done_in_world: int
    applies: tuple[str, ...]
    carried_out: Counter[str]
    overrides: Mapping[int, Override]


@dataclass(slots=True)
class Judge(Witness):
    """
    Attributes:
        checked: How often each rule was asked about.
        met: How often that happened which is no fault.
        outgrown: The ledger on the disk is known to be an older copy, until it is rebuilt.
        let_go: Uids of instances that are up and belong to no fleet, by somebody's decision.
        to_go: Uids of instances that somebody has asked for others of.
    """

    now: float = 0.0
    checked: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    record: Record = field(default_factory=Record)
    executions: Executions = field(default_factory=Executions)
    outgrown: bool = False
    let_go: set[str] = field(default_factory=set)
    to_go: set[str] = field(default_factory=set)
    above: Above = field(init=False)
    _ended: set[str] = field(default_factory=set)
    _unfounded: set[str] = field(default_factory=set)
    _applies: dict[str, _Apply] = field(default_factory=dict)
    _carried_out: Counter[str] = field(default_factory=Counter)
    _made_for: dict[str, list[dict[ResourceKey, int]]] = field(default_factory=dict)
    _operations: dict[str, Step] = field(default_factory=dict)
    _volumes: dict[str, str] = field(default_factory=dict)
    _made_by: dict[str, str] = field(default_factory=dict)
    _marked_by: dict[str, str] = field(default_factory=dict)
    _unmarked: set[str] = field(default_factory=set)
    _places: dict[str, str] = field(default_factory=dict)
    _may_end: set[str] = field(default_factory=set)
    _effects: Counter[tuple[str, str]] = field(default_factory=Counter)
    _done_in_world: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.above = Above(self.require)

    def happened(self, what: str) -> None:
        """Count something that is no fault, and that shall happen."""
        self.met[what] += 1

    def require(self, rule: Rule, truth: bool, what: str) -> None:
        """Note that `what` breaks a rule unless it is `truth`."""
        self.checked[rule.name] += 1
        if not truth:
            self.violate(self.now, f"{what}, but {rule.value}")

    # -- plans ----------------------------------------------------------------------------

    def planned(self, plan: Plan, violations: Sequence[object]) -> None:
        """A plan was made of what there is at this moment."""
        self.require(Rule.CHECKED, not violations, f"{violations}")
        if plan.kept is None:
            self._check_returns(plan)
        self._made_for.setdefault(plan.digest, []).append(
            {key: self.record.state_of(key) for key in _touched(plan.changes)}
        )

    def _check_returns(self, plan: Plan) -> None:
        """Find who is to have data that was let go: only whose it was, unless it is asked for."""
        for step in plan.steps:
            if step.verb != "volume.make":
                continue
            path = step.arguments["path"]
            name, uid = self.record.left.get(path, ("", ""))
            if not uid or path in self._unmarked or self._volumes.get(path) != uid:
                continue  # Nothing was left there, or it is there no more.
            back = step.arguments.get("returns") == uid and step.resource.name == name
            renamed = any(
                one.verb == "resource.move"
                and one.resource == step.resource
                and one.arguments["from"] == name
                for one in plan.steps
            )
            self.require(Rule.KEPT, back or renamed, f"{step.resource} comes to {name}'s {path}")

    def entered(
        self,
        plan: Plan,
        accepted: Accepted,
        permissions: Permissions,
        unjudged: Iterable[str] = (),
        *,
        asked: bool = True,
    ) -> None:
        """
        The ledger took a plan in; of the runs `unjudged` it knew no end.

        `asked` unless somebody managed: then it is they who ask the world, before they do anything.
        """
        self.note(self.now, f"{accepted.state} {accepted.apply_uid[:8]} {plan.digest[:8]}")
        uid = accepted.apply_uid
        # One that had come to its end and is taken up again, is entered again.
        if accepted.state == "new" or (accepted.state == "resumed" and uid in self._ended):
            self.above.check_entry(plan, self.record.rules, self._destroys, self.now)
        self._ended.discard(uid)
        if accepted.state != "new":
            return
        self.require(
            Rule.APPLIED_ONCE,
            # One that was made anew, of a state that has come back, is another of the same digest.
            self._carried_out[plan.digest] < len(self._made_for[plan.digest]),
            f"plan {plan.digest[:8]} was entered after {self._carried_out[plan.digest]} times",
        )
        self.require(
            Rule.RECOVERING, not (asked and self.outgrown), f"plan {plan.digest[:8]} was entered"
        )
        if self.outgrown:
            self._unfounded.add(uid)
        self._applies[uid] = _Apply(
            plan.digest,
            permissions,
            {step.key: one for one in plan.changes for step in one.steps},
            self.record.rules,
            frozenset({*self.executions.alive(), *unjudged}),
        )
        self._check_made_for(plan)
        self._check_destruction(plan, permissions)

    def finished_apply(self, apply_uid: str) -> None:
        self._ended.add(apply_uid)

    def _check_made_for(self, plan: Plan) -> None:
        """Compare with every time that this very plan came out."""
        changed = [
            [key for key, state in made.items() if self.record.state_of(key) != state]
            for made in self._made_for[plan.digest]
        ]
        self.require(Rule.UNCHANGED, not all(changed), f"{changed[-1]} have changed since the plan")

    def _check_destruction(self, plan: Plan, permissions: Permissions) -> None:
        """Compare what a plan would destroy with the rules and resources of our own record."""
        doomed: dict[str, set[ResourceKey]] = {}
        for change in plan.changes:
            for step in change.steps:
                one = self.record.resources.get(step.resource)
                if step.verb in _ENDS and one is not None:
                    self.require(
                        Rule.PROTECTED, not one.protected, f"{step.verb} of {step.resource}"
                    )
                if self._destroys(step):
                    doomed.setdefault(change.key.kind, set()).add(change.key)
                    self._check_permitted(change, step, permissions, self.record.rules)
        if permissions.destroy:
            return
        rules = self.record.rules
        for kind, keys in doomed.items():
            there = self.record.present(kind)
            limit = max(
                rules.delete_count,
                there * rules.delete_percent // 100,
                permissions.allow_deletes or 0,
            )
            self.require(
                Rule.BUDGET, len(keys) <= limit, f"{len(keys)} of {there} {kind}s go, not {limit}"
            )

    def _destroys(self, step: Step) -> bool:
        if step.verb in {"fleet.remove", "volume.remove"}:
            return True
        one = self.record.resources.get(step.resource)
        # Its name may still run as somebody else, who was asked to end before.
        return step.verb == "run.stop" and one is not None and self.executions.is_alive(one.run_uid)

    def _check_permitted(
        self, change: Change, step: Step, permissions: Permissions, rules: Rules
    ) -> None:
        allowed = permissions.allow_destroy or rules.allow_destroy
        if not allowed and step.verb == "run.stop":
            again = any(one.verb == "run.submit" for one in change.steps)
            before = self.record.resources.get(step.resource)
            asked = any(
                one.arguments.get("document", {}).get("on_change") == "restart"
                for one in change.steps
            ) and (before is None or before.document.get("on_change") == "restart")
            allowed = again and (permissions.allow_restart or asked)
        self.require(Rule.PERMITTED, allowed, f"{step.verb} of {step.resource}")

    # -- steps ----------------------------------------------------------------------------

    def begun(self, steps: Sequence[Step], on_disk: Mapping[str, str]) -> None:
        """Intents were written; `on_disk` are the operations that really are, by step."""
        for step in steps:
            uid = on_disk.get(step.key, "")
            if uid:
                self._operations[uid] = step
            self.note(self.now, f"intends {step.key} as {uid[:8]}")

    def finished(
        self,
        apply_uid: str,
        steps: Sequence[Step],
        errors: Mapping[str, str],
        known: Iterable[str],
        run_uids: Mapping[str, str],
        hosts: Mapping[str, str],
    ) -> None:
        """
        Outcomes were written.

        `known` are keys that had been written as done before; `run_uids` what submitted runs have
        become, by name; `hosts` who belongs to a fleet by now, names by uid.
        """
        before = set(known)
        entered = self._applies.get(apply_uid)
        if entered is not None and not before and any(not errors.get(one.key) for one in steps):
            # The first of it: an apply of which everything failed may be tried again.
            self._carried_out[entered.digest] += 1
        for step in steps:
            error = errors.get(step.key, "")
            self.note(self.now, f"{'failed' if error else 'done'} {step.key} {error}".rstrip())
            if error and step.verb == "volume.make":
                # It may be there all the same, marked and empty; only a next try looks.
                self.record.left_paths.add(step.arguments["path"])
            if error or step.key in before:
                continue
            # What was planned of an older copy is over with it, also once that is rebuilt.
            founded = self.outgrown or apply_uid not in self._unfounded
            self.require(Rule.RECOVERING, founded, f"{step.key} of an older copy's plan was done")
            self._check_step(apply_uid, step)
            self._take_over_names(step)
            if step.resource.kind == "fleet":
                change = None if entered is None else entered.changes.get(step.key)
                self._take_fleet(step, hosts, told=change is not None and change.destructive)
            volume_uid = self._volumes.get(step.arguments.get("path", ""), "")
            self.record.take(step, run_uids.get(step.resource.name, ""), volume_uid)

    def left(self, unasked: Sequence[str]) -> None:
        """Names have left the tree; `unasked` are runs of theirs that go on all the same."""
        self.require(Rule.SEEN, not unasked, f"{unasked} go on")

    def _take_over_names(self, step: Step) -> None:
        """What is said of names outside of the record, and concerns this step."""
        if step.verb == "resource.move" and step.resource.kind == "run":
            self.executions.rename(step.arguments["from"], step.resource.name)
        if step.verb == "resource.move":
            kind = step.resource.kind
            self.above.rename(f"{kind}/{step.arguments['from']}", str(step.resource))
        if step.verb == "fleet.forget":
            # Its hosts stay up, and are nobody's; its name is free.
            prefix = f"{step.resource.name}-"
            self.let_go |= {uid for uid, place in self._places.items() if place.startswith(prefix)}

    def _take_fleet(self, step: Step, hosts: Mapping[str, str], *, told: bool) -> None:
        """
        Note whose hosts they are, and which of them are to give way.

        `told`: the plan said that this ends work, as it must of what was being exchanged already.
        """
        name, said = step.resource.name, step.arguments
        mine = {uid for uid, host in hosts.items() if host.startswith(f"{name}-")}
        before = self.record.resources.get(step.resource)
        if step.verb == "fleet.adopt":
            self.happened("fleet taken in")
        self.let_go -= mine
        if step.verb != "fleet.update":
            return
        asked = {uid for uid in mine if hosts[uid] in said.get("exchange", ())}
        self.to_go |= asked
        if asked:
            self.happened("host replaced")
        if _strategy(said["document"]) == "recreate":
            others = before is not None and _division(before.document) != _division(
                said["document"]
            )
            hastened = told and before is not None and _strategy(before.document) != "recreate"
            self._may_end |= mine if others or hastened else asked

    def _check_step(self, apply_uid: str, step: Step) -> None:
        """Look once more where time has passed since the plan was entered."""
        known = self._applies.get(apply_uid)
        before = self.record.resources.get(step.resource)
        if step.verb in _ENDS and before is not None:
            self.require(Rule.PROTECTED, not before.protected, f"{step.verb} of {step.resource}")
        if step.verb in {"volume.make", "volume.adopt"}:
            self._check_volume(step)
        if known is not None and self._destroys(step):
            change = known.changes[step.key]
            self._check_permitted(change, step, known.permissions, known.rules)
        # One that ran when it was decided to restart it may have ended by itself since.
        alive = known is not None and before is not None and before.run_uid in known.alive
        if step.verb == "run.submit" and before is not None and not alive:
            self._check_reason(step, before)

    def _check_volume(self, step: Step) -> None:
        """A directory is one volume's: nobody else has it, by our own record."""
        path = step.arguments["path"]
        others = [
            str(key)
            for key, one in self.record.resources.items()
            if key.kind == "volume" and key != step.resource and one.document.get("path") == path
        ]
        self.require(Rule.KEPT, not others, f"{step.resource} comes to {path} of {others}")
        if step.arguments.get("returns"):
            self.happened("volume that comes back")

    def _check_reason(self, step: Step, before: Applied) -> None:
        """Find in our own record why a run that is over may be executed again."""
        said = step.arguments
        end = self.executions.end_of(before.run_uid)
        if end is None:
            return  # Its earlier execution never began, or is not over: that is `ALONE`.
        other = said["execution_digest"] != before.execution_digest
        stopped = before.document.get("state") == "stopped"
        reasons = (
            mentions(said["document"], before.former),
            other and (before.archived or said["own_digest"] != before.own_digest),
            said["document"].get("rerun", 0) > before.mark,
            # Lost with its host, it may have been asked to end before anybody knew.
            end in {"stopped", "lost"} and (before.archived or stopped),
        )
        self.require(Rule.REASON, any(reasons), f"{step.resource} had ended ({end})")

    # -- the world ------------------------------------------------------------------------

    def made_instance(
        self, uid: str, place: str, *, written: bool, others: Mapping[str, str]
    ) -> None:
        """
        A host exists.

        `others` are the names of those that exist beside it, by uid: the ledger's where it knows
        one, for a host that stands in for another gets its name when that one has gone.
        """
        self.note(self.now, f"made instance {uid[:8]} at {place}")
        self._effect("made", uid, f"{place} was made")
        self.require(Rule.INTENDED, written, f"{place} was made as {uid[:8]}")
        twins = [
            one[:8] for one, name in others.items() if name == place and one not in self.let_go
        ]
        self.require(Rule.ALONE, not twins, f"{place} is {uid[:8]} and {twins}")
        self._places[uid] = place

    def released(
        self, uid: str, place: str, *, fleet: str, leaving: bool, ends: Sequence[str]
    ) -> None:
        """`ends` are the names of what was at work there."""
        self.note(self.now, f"released {place}")
        planned = uid in self._may_end or any(
            step.verb == "fleet.remove" and step.resource.name == fleet
            for step in self._operations.values()
        )
        self.require(Rule.GIVES_WAY, planned or not ends, f"{place} was released under {ends}")
        self._effect("released", uid, f"{place} was released")
        self.require(Rule.INTENDED, leaving, f"{place} was released")
        self._places.pop(uid, None)

    def made_volume(self, path: str, volume_uid: str, operation_uid: str) -> None:
        self._done_to_volume("made", path, volume_uid, operation_uid)
        self._made_by[path] = operation_uid
        self._check_same(path, self._volumes.setdefault(path, volume_uid), volume_uid)

    def marked_volume(self, path: str, volume_uid: str, operation_uid: str) -> None:
        """A directory bears the mark again that it had."""
        self._done_to_volume("marked", path, volume_uid, operation_uid)
        self._marked_by[path] = operation_uid
        self._unmarked.discard(path)
        self._check_same(path, self._volumes.get(path, volume_uid), volume_uid)

    def lost_mark(self, path: str) -> None:
        """Its operation may be on its way still, and marks it once more."""
        self._unmarked.add(path)
        self._effects.pop((self._marked_by.pop(path, ""), "marked"), None)

    def lost_volume(self, path: str) -> None:
        """Its directory is gone, by nobody we know."""
        self._unmarked.discard(path)
        self._volumes.pop(path, None)
        # Its operation may be on its way still, and makes it once more.
        self._effects.pop((self._made_by.pop(path, ""), "made"), None)

    def adopted_volume(self, path: str, volume_uid: str, operation_uid: str) -> None:
        """A directory that was there is this volume from now on."""
        self._done_to_volume("adopted", path, volume_uid, operation_uid, needs="volume.adopt")
        self._volumes[path] = volume_uid
        self._unmarked.discard(path)

    def removed_volume(self, path: str, volume_uid: str, operation_uid: str) -> None:
        self._done_to_volume("removed", path, volume_uid, operation_uid, needs="volume.remove")
        step = self._operations.get(operation_uid)
        before = self.record.resources.get(step.resource) if step is not None else None
        if before is not None:
            policy = before.document.get("deletion_policy", "retain")
            self.require(Rule.KEPT, policy == "delete", f"{path} was removed under {policy!r}")
        left = self.record.left.get(path, ("", ""))
        self.require(Rule.KEPT, left[1] != volume_uid, f"{path} of {left[0]} was removed")
        self._volumes.pop(path, None)

    def put_volume_aside(self, path: str, volume_uid: str, operation_uid: str) -> None:
        self._done_to_volume("put aside", path, volume_uid, operation_uid, needs="volume.snapshot")
        self._volumes.pop(path, None)

    def _done_to_volume(
        self, done: str, path: str, volume_uid: str, operation_uid: str, *, needs: str = ""
    ) -> None:
        """Each deed is one operation's, and once; what ends or takes data is that verb's alone."""
        self.note(self.now, f"{done}: volume {volume_uid[:8]} at {path}")
        self._effect("volume", operation_uid, f"{path} was {done}")
        step = self._operations.get(operation_uid)
        self.require(Rule.INTENDED, step is not None, f"{path} was {done} for {operation_uid[:8]}")
        self._effects[operation_uid, done] += 1
        times = self._effects[operation_uid, done]
        self.require(Rule.ONCE, times == 1, f"{path} was {done} {times} times")
        if needs:
            asked = step is not None and step.verb == needs
            self.require(Rule.PERMITTED, asked, f"the data of {path} was {done}")

    def _check_same(self, path: str, there: str, volume_uid: str) -> None:
        self.require(Rule.ALONE, there == volume_uid, f"{path} is two volumes")

    def began(self, name: str, run_uid: str, attempt: int, fleet: str) -> None:
        """A process of a run exists on a host of this fleet."""
        self.above.check_beginning(name, fleet, (run_uid, attempt), self.now)
        self.note(self.now, f"began {name} {run_uid[:8]}/{attempt}")
        self._effect("run", run_uid, f"{name} was started")
        times, others = self.executions.begin(name, run_uid, attempt)
        self.require(Rule.ONCE, times == 1, f"{name} {run_uid[:8]}/{attempt} began {times} times")
        self.require(Rule.ALONE, not others, f"{name} runs beside {others}")

    def ended(self, name: str, run_uid: str, attempt: int, *, how: str) -> None:
        """`how`: `done`, `failed`, `stopped`, or `lost` with its host."""
        self.note(self.now, f"ended {name} {run_uid[:8]}/{attempt}: {how}")
        self.executions.end(run_uid, attempt, how)

    def requeued(self, run_uid: str) -> None:
        self.executions.requeued(run_uid)

    # -- restored ledgers -------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """What is believed now, for a copy of the ledger that is made now."""
        return Snapshot(
            # Documents are never changed, so that they may be shared.
            self.record.copy(),
            frozenset(self.to_go),
            len(self._done_in_world),
            tuple(self._applies),
            self._carried_out.copy(),
            dict(self.above.overrides),
        )

    def restored(self, marks: Snapshot, disk: Disk, *, is_known: bool) -> None:
        """
        The ledger is that copy again: what was applied since is known to nobody.

        `is_known` tells whether some host is left that can know of it: what nobody remembers
        nobody can find out.
        """
        version, made = self.record.version, self.record.left_paths | self._volumes.keys()
        self.record = marks.record.copy()
        self.to_go = set(marks.to_go)
        self.above.overrides = dict(marks.overrides)
        if is_known:
            self.record.version = {key: number + 1 for key, number in version.items()}
        else:
            self._carried_out = marks.carried_out.copy()
        # Nothing is removed for being unknown: data of which no ledger tells stays where it is.
        self.record.left_paths |= made - self._paths(disk)
        self.outgrown = is_known and any(
            not disk.ask(_KNOWN[kind], (uid,))
            for kind, uid in self._done_in_world[marks.done_in_world :]
        )
        self._take_back(disk)
        if not self.outgrown:
            # This copy may have been made when it was, and nobody is left who knows better.
            self._unfounded.clear()
        self.note(self.now, f"restored{', outgrown' if self.outgrown else ''}")
        self._applies = {uid: self._applies[uid] for uid in marks.applies}

    def _take_back(self, disk: Disk) -> None:
        """Hosts of which this ledger knows the fleet are let go no more."""
        rows = disk.ask("SELECT uid FROM instances WHERE fleet <> '' AND state <> 'terminated'")
        self.let_go -= {uid for (uid,) in rows}

    @staticmethod
    def _paths(disk: Disk) -> set[str]:
        rows = disk.ask("SELECT document ->> 'path' FROM resources WHERE kind = 'volume'")
        return {path for (path,) in rows}

    def rebuilt(self, disk: Disk) -> None:
        """Somebody has put it together again: from here on we believe what it says of runs."""
        self.outgrown = False
        self._take_back(disk)
        # A host's template is made up of what is declared now.
        self.to_go.clear()
        self.record.left = {
            path: (name, uid)
            for name, uid, path in disk.ask(
                "SELECT volume, volume_uid, path FROM snapshots WHERE place = path"
            )
        }
        for kind, name, uid, document, digest, execution, own, archived in disk.ask(
            "SELECT kind, name, uid, document, digest, execution_digest, own_digest, archived"
            " FROM resources"
        ):
            key = ResourceKey(kind, name)
            before = self.record.resources.get(key)
            self.record.version[key] = self.record.version.get(key, 0) + 1
            self.record.resources[key] = Applied(
                document=json.loads(document),
                execution_digest=execution,
                own_digest=own,
                digest=digest,
                archived=bool(archived),
                mark=before.mark if before else 0,
                run_uid=uid if kind == "run" else "",
            )

    def entered_uids(self) -> tuple[str, ...]:
        return tuple(self._applies)

    def managed(self, who: str, fence: int, newest: int) -> None:
        """Somebody has caused something under their fence, while this was the newest."""
        self.above.check_resting(who, self.now)
        self.require(
            Rule.FENCED, fence == newest, f"{who} acts with fence {fence}, and {newest} is taken"
        )

    def _effect(self, kind: str, uid: str, what: str) -> None:
        self._done_in_world.append((kind, uid))
        self.require(Rule.RECOVERING, not self.outgrown, what)


def _division(document: Mapping[str, Any]) -> tuple[str, int]:
    """What hosts are made from; anything else changes in place."""
    return document.get("sharing", "exact"), document.get("blocks", 1)


def _touched(changes: Sequence[Change]) -> Iterable[ResourceKey]:
    return (step.resource for change in changes for step in change.steps)


def _strategy(document: Mapping[str, Any]) -> str:
    return str((document.get("update") or {}).get("strategy", ""))

"""Plans, from when they are made until they are entered: for what they are right, and what they may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleetform.model.apply import Accepted
from fleetform.model.plan import Change, Permissions, Plan, Step
from fleetform.spec.desired import ResourceKey, Rules
from simulation.apply.evidence import Evidence
from simulation.apply.overrides import Overrides
from simulation.apply.record import GONE
from simulation.apply.rule import Rule
from simulation.apply.volumes import Volumes

__all__ = ["Entries", "Entry"]

_ENDS = GONE | {"run.archive", "run.submit"}
"""After one of these, what the name stood for is gone, or another thing has it."""


@dataclass(frozen=True, slots=True)
class Entry:
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


class Entries:
    """
    Attributes:
        of: Entered plans by the uid of their apply.
        carried_out: How often something of a plan was done, by its digest.
        unfounded: Applies of a plan that was made of an older copy.
    """

    def __init__(self, evidence: Evidence, above: Overrides, volumes: Volumes) -> None:
        self.of: dict[str, Entry] = {}
        self.carried_out: Counter[str] = Counter()
        self.unfounded: set[str] = set()
        self._evidence = evidence
        self._above = above
        self._volumes = volumes
        self._ended: set[str] = set()
        self._made_for: dict[str, list[dict[ResourceKey, int]]] = {}

    def planned(self, plan: Plan, violations: Sequence[object]) -> None:
        """A plan was made of what there is at this moment."""
        self._evidence.require(Rule.CHECKED, not violations, f"{violations}")
        if plan.kept is None:
            self._check_returns(plan)
        state_of = self._evidence.record.state_of
        made_for = {key: state_of(key) for key in _touched(plan.changes)}
        self._made_for.setdefault(plan.digest, []).append(made_for)

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
        seen = self._evidence
        seen.note(seen.now, f"{accepted.state} {accepted.apply_uid[:8]} {plan.digest[:8]}")
        uid = accepted.apply_uid
        # One that had come to its end and is taken up again, is entered again.
        if accepted.state == "new" or (accepted.state == "resumed" and uid in self._ended):
            self._above.check_entry(plan, seen.record.rules, seen.destroys, seen.now)
        self._ended.discard(uid)
        if accepted.state != "new":
            return
        seen.require(
            Rule.APPLIED_ONCE,
            # One that was made anew, of a state that has come back, is another of the same digest.
            self.carried_out[plan.digest] < len(self._made_for[plan.digest]),
            f"plan {plan.digest[:8]} was entered after {self.carried_out[plan.digest]} times",
        )
        seen.require(
            Rule.RECOVERING, not (asked and seen.outgrown), f"plan {plan.digest[:8]} was entered"
        )
        if seen.outgrown:
            self.unfounded.add(uid)
        self.of[uid] = Entry(
            plan.digest,
            permissions,
            {step.key: one for one in plan.changes for step in one.steps},
            seen.record.rules,
            frozenset({*seen.executions.alive(), *unjudged}),
        )
        self._check_made_for(plan)
        self._check_destruction(plan, permissions)

    def finished(self, apply_uid: str) -> None:
        self._ended.add(apply_uid)

    def check_permitted(
        self, change: Change, step: Step, permissions: Permissions, rules: Rules
    ) -> None:
        """Whoever entered this plan was allowed what this step of it ends."""
        allowed = permissions.allow_destroy or rules.allow_destroy
        if not allowed and step.verb == "run.stop":
            again = any(one.verb == "run.submit" for one in change.steps)
            before = self._evidence.record.resources.get(step.resource)
            asked = any(
                one.arguments.get("document", {}).get("on_change") == "restart"
                for one in change.steps
            ) and (before is None or before.document.get("on_change") == "restart")
            allowed = again and (permissions.allow_restart or asked)
        self._evidence.require(Rule.PERMITTED, allowed, f"{step.verb} of {step.resource}")

    def _check_returns(self, plan: Plan) -> None:
        """Find who is to have data that was let go: only whose it was, unless it is asked for."""
        for step in plan.steps:
            if step.verb != "volume.make":
                continue
            path = step.arguments["path"]
            name, uid = self._evidence.record.left.get(path, ("", ""))
            if not uid or not self._volumes.is_marked(path, uid):
                continue  # Nothing was left there, or it is there no more.
            back = step.arguments.get("returns") == uid and step.resource.name == name
            renamed = any(
                one.verb == "resource.move"
                and one.resource == step.resource
                and one.arguments["from"] == name
                for one in plan.steps
            )
            self._evidence.require(
                Rule.KEPT, back or renamed, f"{step.resource} comes to {name}'s {path}"
            )

    def _check_made_for(self, plan: Plan) -> None:
        """Compare with every time that this very plan came out."""
        state_of = self._evidence.record.state_of
        changed = [
            [key for key, state in made.items() if state_of(key) != state]
            for made in self._made_for[plan.digest]
        ]
        self._evidence.require(
            Rule.UNCHANGED, not all(changed), f"{changed[-1]} have changed since the plan"
        )

    def _check_destruction(self, plan: Plan, permissions: Permissions) -> None:
        """Compare what a plan would destroy with the rules and resources of our own record."""
        seen, rules = self._evidence, self._evidence.record.rules
        doomed: dict[str, set[ResourceKey]] = {}
        for change in plan.changes:
            for step in change.steps:
                self.check_protected(step)
                if seen.destroys(step):
                    doomed.setdefault(change.key.kind, set()).add(change.key)
                    self.check_permitted(change, step, permissions, rules)
        if permissions.destroy:
            return
        for kind, keys in doomed.items():
            there = seen.record.present(kind)
            limit = max(
                rules.delete_count,
                there * rules.delete_percent // 100,
                permissions.allow_deletes or 0,
            )
            seen.require(
                Rule.BUDGET, len(keys) <= limit, f"{len(keys)} of {there} {kind}s go, not {limit}"
            )

    def check_protected(self, step: Step) -> None:
        """What was applied with a protection does not go, and nothing else gets its name."""
        one = self._evidence.record.resources.get(step.resource)
        if step.verb in _ENDS and one is not None:
            self._evidence.require(
                Rule.PROTECTED, not one.protected, f"{step.verb} of {step.resource}"
            )


def _touched(changes: Sequence[Change]) -> Iterable[ResourceKey]:
    return (step.resource for change in changes for step in change.steps)
